"""A run of an audit that is tried again, after a crash too: what the first try has found stands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.auditing.delta_lake import Lake, two_days

import nightkeep
from nightkeep.auditing import audit as audit_module
from nightkeep.errors import UsageError
from nightkeep.model import Outcome
from nightkeep.records import load_history


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table that was audited, and whose newest commit has lost a row."""
    lake = two_days(tmp_path)
    lake.audit()
    lake.compact(lambda rows: rows.slice(1))
    return lake


def outcomes(lake: Lake) -> list[Outcome]:
    name = f"delta:{lake.made.folder}"
    return [document.outcome for document in load_history(lake.reports, name) if document.run_id == "night"]


def test_a_mismatch_stands_when_its_run_is_tried_again(lake: Lake) -> None:
    first = lake.audit(run_id="night")
    assert first.outcome is Outcome.MISMATCH
    again = lake.audit(run_id="night")
    assert (again.outcome, again.reason) == (Outcome.MISMATCH, first.reason)
    assert outcomes(lake) == [Outcome.MISMATCH]
    assert lake.audit(run_id="next").outcome is Outcome.UNCHANGED


def test_a_mismatch_stands_after_a_crash_before_its_mark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crash, pytest.raises(KeyboardInterrupt):
        crash.setattr(audit_module, "keep_audit_mark", dies)
        lake.audit(run_id="night")
    assert lake.audit(run_id="night").outcome is Outcome.MISMATCH
    assert lake.audit(run_id="next").outcome is Outcome.MISMATCH


@pytest.mark.parametrize("moved", [False, True])
def test_a_mark_that_may_not_have_moved_fails_no_audit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    keep = audit_module.keep_audit_mark

    def fails(*arguments: object) -> None:
        if moved:
            keep(*arguments)  # type: ignore[arg-type]
        raise OSError("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(audit_module, "keep_audit_mark", fails)
        assert lake.audit(run_id="night").outcome is Outcome.MISMATCH
    assert lake.audit(run_id="night").outcome is Outcome.MISMATCH
    assert lake.audit(run_id="next").outcome is (Outcome.UNCHANGED if moved else Outcome.MISMATCH)


def test_an_audit_whose_document_cannot_be_stored_moves_no_mark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(sys.modules["nightkeep.records.store"], "store", fails)
        assert lake.audit(run_id="night").outcome is Outcome.FAILED
    assert lake.audit(run_id="night").outcome is Outcome.MISMATCH


def test_an_audit_without_a_verdict_is_done_when_it_is_tried_again(lake: Lake) -> None:
    newest = lake.log / f"{lake.made.version:020d}.json"
    text = newest.read_text()
    newest.write_text("{")
    assert lake.audit(run_id="night").outcome is Outcome.FAILED
    newest.write_text(text)
    assert lake.audit(run_id="night").outcome is Outcome.MISMATCH


def test_a_run_id_belongs_to_its_options(lake: Lake) -> None:
    lake.audit(run_id="night")
    with pytest.raises(UsageError, match="expected the options of its first attempt"):
        nightkeep.audit(f"delta:{lake.made.folder}", reports=lake.reports, run_id="night", files=True)
