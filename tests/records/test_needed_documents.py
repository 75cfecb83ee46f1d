"""Which old documents of a table something still needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.records.test_kept_index import NIGHT, document

from nightkeep.model import Operation, Outcome
from nightkeep.records import CheckStatus, Expectations, RunDocument
from nightkeep.records.failure_outcomes import UNFINISHED, UNKNOWN
from nightkeep.records.index_rows import brief_document, row_of
from nightkeep.records.needed_documents import TableNeeds, unneeded

DAY_MS = 24 * 3600 * 1000
PURGED = TableNeeds(purge_after_ms=30 * DAY_MS)


def done(night: int) -> RunDocument:
    return document("t", night, Outcome.VERIFIED)


def swept(night: int, mode: str = "quarantine", **extra: object) -> RunDocument:
    moved = {"mode": mode, "quarantine": f"/t/.quarantine/{night}", "acted": {"files": 3, "bytes": 9}}
    made = replace(done(night), operation=Operation.SWEEP, committed_version=None, base_version=None)
    return replace(made, extra={**moved, **extra})


def nights(documents: list[RunDocument]) -> list[int]:
    return [(each.started_at - NIGHT).days for each in documents]


NEWER = [done(100), document("t", 101)]


def test_what_nothing_needs_goes_oldest_first() -> None:
    old = [document("t", 2), done(1), done(0)]
    assert nights(unneeded(old, NEWER, TableNeeds())) == [0, 1, 2]


KEPT: dict[str, tuple[Callable[[RunDocument], RunDocument], TableNeeds]] = {
    "on hold": (lambda each: each, TableNeeds(held=frozenset({"nightly-1:t"}))),
    "a hold that cannot be read": (lambda each: each, TableNeeds(held=None)),
    "not checked": (lambda each: replace(each, expectations=Expectations(CheckStatus.NOT_RUN)), TableNeeds()),
    "checked in vain": (lambda each: replace(each, expectations=Expectations(CheckStatus.ERRORED)), TableNeeds()),
    "killed before its end": (
        lambda each: replace(each, committed_version=None, reason=f"{UNFINISHED}; ..."),
        TableNeeds(),
    ),
    "a commit without an answer": (
        lambda each: replace(each, committed_version=None, reason=f"{'x' * 900}; {UNKNOWN}"),
        TableNeeds(),
    ),
    "files in quarantine": (lambda each: swept(1), PURGED),
    "files in quarantine, by no policy": (lambda each: swept(1), TableNeeds()),
}


@pytest.mark.parametrize("why", KEPT)
def test_what_is_needed_stays(why: str) -> None:
    change, needs = KEPT[why]
    found = unneeded([done(0), change(done(1)), done(2)], [*NEWER, swept(30)], needs)
    assert nights(found) == ([] if needs.held is None else [0, 2])


def test_without_checks_nothing_waits_for_one() -> None:
    waits = replace(done(1), expectations=Expectations(CheckStatus.NOT_RUN))
    assert nights(unneeded([waits], NEWER, TableNeeds(is_checked=False))) == [1]


def test_quarantines_are_needed_until_a_sweep_has_purged_them() -> None:
    old = [swept(1)]
    later = {
        "in time": swept(30),
        "too early": swept(29),
        "a dry run": swept(40, "dry-run"),
        "refused": replace(swept(40), outcome=Outcome.REFUSED),
    }
    found = {why: nights(unneeded(old, [*NEWER, each, swept(50, "dry-run")], PURGED)) for why, each in later.items()}
    assert found == {"in time": [], "too early": [], "a dry run": [], "refused": []}
    # 30 days after its end, not after its begin.
    assert nights(unneeded(old, [*NEWER, swept(32)], PURGED)) == [1]


def test_the_newest_of_each_kind_stays_for_the_last() -> None:
    failed = replace(document("t", 5), outcome=Outcome.FAILED, reason="disk full")
    old = [done(0), done(1), document("t", 2), failed]
    # By itself: the newest that published, that found nothing to do, and the newest of all.
    assert nights(unneeded(old, [], TableNeeds())) == [0]
    assert nights(unneeded(old, [document("t", 9)], TableNeeds())) == [0, 2, 5]
    assert nights(unneeded(old, [done(9)], TableNeeds())) == [0, 1, 2, 5]
    audit = replace(document("t", 3), operation=Operation.AUDIT)
    assert nights(unneeded([*old, audit], [done(9)], TableNeeds())) == [0, 1, 2, 5]
    listed = swept(4, "dry-run", orphans_total=7, quarantine=None)
    assert nights(unneeded([listed], [swept(9, quarantine=None)], TableNeeds())) == []


def test_rows_of_the_index_suffice_as_newer_documents() -> None:
    brief = [brief_document(row_of(each, 0)) for each in (*NEWER, swept(60), swept(70))]
    assert nights(unneeded([done(0), swept(1)], brief, PURGED)) == [0, 1]


def test_documents_of_one_time_are_judged_alone() -> None:
    same = [replace(done(0), run_id=f"{n}", finished_at=NIGHT + timedelta(minutes=1)) for n in range(3)]
    assert len(unneeded(same, [], TableNeeds())) == 2
