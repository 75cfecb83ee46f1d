"""A table that has no policy, for whatever reason: it fails by name, and the rest of its group is maintained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.groups.session.test_run_group import Checking
from tests.records.test_documents import NIGHT
from tests.support.commands import said

from nightkeep.commands.job import run_job, sweep_job
from nightkeep.errors import PolicyError, UsageError
from nightkeep.groups.session.check_group import check_group
from nightkeep.groups.session.run_group import run_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Operation, Outcome
from nightkeep.nights.run_pages import RunPage, write_run
from nightkeep.nights.settled import Settled
from nightkeep.policy import Overrides, groups, load, load_usable
from nightkeep.records import load_history
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange
from nightkeep_airflow.job_operator import _named

POLICY = """\
version: 1
defaults: {{check: {{enabled: false}}}}
tables:
  - {{name: "one, two", table: "memory:{folder}/one"}}
  - {{name: elsewhere, table: "paimon:${{NK_TEST_UNSET}}/elsewhere"}}
  - {{name: anywhere, table: "${{NK_TEST_UNSET}}"}}
  - {{name: early, table: "delta:{folder}/early", sweep: {{older_than: 24h}}}}
  - {{name: upgraded, table: "memory:{folder}/last", operations: [upgrade]}}
  - {{name: last, table: "memory:{folder}/last2"}}
"""
NAMES = ("one, two", "elsewhere", "anywhere", "early", "removed", "upgraded", "last")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("paimon", "delta", "iceberg", "memory"))
    monkeypatch.setattr("nightkeep.groups.session.run_group.beside", lambda engine: engine)
    monkeypatch.setattr("nightkeep.checking.on_spark.check", lambda request, engine: engine.check(request))
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    monkeypatch.delenv("NK_TEST_UNSET", raising=False)
    for name in ("one", "last", "last2"):
        engine = MemoryEngine(f"{tmp_path}/{name}")
        engine.append("2026-11-01", range(10))
        engine.append("2026-11-01", range(10, 20))
    (tmp_path / "tables.yaml").write_text(POLICY.format(folder=tmp_path))
    return tmp_path


def group(folder: Path, *tables: str, **more: Any) -> TableGroup:
    return TableGroup(load_usable(folder / "tables.yaml"), tables, "night-1", str(folder / "reports"), **more)


def outcomes(found: list[StoredDocument]) -> list[tuple[str, Outcome]]:
    return [(each.document.table, each.document.outcome) for each in found]


def cared(folder: Path, *tables: str) -> list[StoredDocument]:
    return [*run_group(group(folder, *tables), (), cast(Engine, Checking(folder)))]


EXPECTED = [
    ("one, two", Outcome.VERIFIED),
    ("elsewhere", Outcome.FAILED),
    ("anywhere", Outcome.FAILED),
    ("early", Outcome.FAILED),
    ("removed", Outcome.FAILED),
    ("upgraded", Outcome.REFUSED),
    ("last", Outcome.VERIFIED),
]


def test_only_the_table_without_a_policy_fails_and_its_document_is_stored(folder: Path) -> None:
    found = cared(folder, *NAMES)
    assert outcomes(found) == EXPECTED
    reasons = {each.document.table: str(each.document.reason) for each in found}
    assert "expected environment variable NK_TEST_UNSET to be set" in reasons["elsewhere"]
    assert "sweep.older_than: expected at least 7d" in reasons["early"]
    assert reasons["removed"].startswith("removed: expected a name of ")
    assert [each.document.format for each in found[1:5]] == ["paimon", "unknown", "delta", "unknown"]
    assert [load_history(folder / "reports", name)[0].outcome for name in NAMES] == [one for _, one in EXPECTED]


def test_a_job_takes_names_with_commas_and_goes_on(folder: Path) -> None:
    result = folder / "result.json"
    where = ["--policy", str(folder / "tables.yaml"), "--reports", str(folder / "reports"), "--result", str(result)]
    arguments = [*where, "--run-id-prefix", "night-1", *_named(NAMES)]
    assert run_job(arguments, operations=()) == 0
    told = {entry["table"]: entry["outcome"] for entry in json.loads(result.read_text())}
    assert told == dict(EXPECTED)
    assert sweep_job(arguments) == 0
    told = {entry["table"]: entry["outcome"] for entry in json.loads(result.read_text())}
    assert told.keys() == set(NAMES) and told["elsewhere"] == told["removed"] == "failed"


def test_a_job_without_tables_is_a_slip(folder: Path) -> None:
    with pytest.raises(UsageError, match="--tables, --table: expected the name or address of a table"):
        run_job(["--policy", str(folder / "tables.yaml"), "--reports", "r", "--run-id-prefix", "n"], operations=())


def test_every_table_of_the_file_is_in_a_group(folder: Path) -> None:
    policy = load_usable(folder / "tables.yaml")
    assert {name for found in groups(policy) for name in found} == {*NAMES} - {"removed"}
    with pytest.raises(PolicyError, match="NK_TEST_UNSET"):
        load(folder / "tables.yaml")


def test_what_was_published_under_a_policy_that_went_is_not_called_checked(folder: Path) -> None:
    text = (folder / "tables.yaml").read_text()
    (folder / "tables.yaml").write_text(text.replace("enabled: false", "enabled: true"))
    with pytest.raises(KeyboardInterrupt):
        [*run_group(group(folder, "last"), (), cast(Engine, Checking(folder, KeyboardInterrupt())))]
    (folder / "tables.yaml").write_text(text.replace("name: last,", "name: renamed,"))
    (found,) = check_group(group(folder, "last"), cast(Engine, Checking(folder)))
    assert (found.document.outcome, found.document.committed_version) == (Outcome.FAILED, 4)
    assert "its check did not finish: last: expected a name of" in str(found.document.reason)


def test_what_is_stated_for_all_of_them_ends_the_job_before_any_work(folder: Path) -> None:
    wrong = group(folder, "elsewhere", "last", overrides=Overrides(target_size="3"))
    with pytest.raises(UsageError, match="--target-size"):
        [*run_group(wrong, (Operation.OPTIMIZE,), cast(Engine, Checking(folder)))]
    assert not (folder / "reports").exists()


def test_a_command_for_one_table_does_not_ask_for_anothers_variables(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--policy", str(folder / "tables.yaml"), "--reports", str(folder / "reports")]
    assert said(capsys, "plan", "last", *where).status == 0
    told = said(capsys, "plan", "elsewhere", *where)
    assert told.status == 2 and "NK_TEST_UNSET" in told.err and told.err.count("\n") == 1


def test_the_page_of_a_run_names_a_table_that_left_the_policy(folder: Path) -> None:
    told = [Settled(name, Outcome.FAILED, f"{name} ended", ()) for name in ("removed", "elsewhere", "one, two")]
    run = RunPage("night", "night", NIGHT)
    page = write_run(str(folder / "reports"), run, told, policy=load_usable(folder / "tables.yaml"))
    text = Path(page).read_text()
    assert all(f"{name} ended" in text for name in ("removed", "elsewhere", "one, two"))
