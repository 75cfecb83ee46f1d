"""What batches became -> what a document says: units by outcome, costs added up, reasons in the order to be read."""

from types import SimpleNamespace
from typing import Any

import pytest

from nightkeep.model import (
    Committed,
    Conflicted,
    FileSizes,
    Fingerprint,
    Mismatch,
    Outcome,
    Rewrite,
    TaskCost,
    UnitKey,
    UnitProof,
    VersionIdentity,
)
from nightkeep.records import Metrics
from nightkeep.running.rewrites.run_summary import (
    Batch,
    ending_reason,
    mismatched,
    run_metrics,
    share_of_rewrite,
    sizes,
    unfinished,
    unit_results,
    versions_of,
)
from nightkeep.running.run_log import commits

ONE, TWO, THREE = (UnitKey(f"day={n}") for n in (1, 2, 3))


def cost(cpu: float = 1.0, peak: int = 10, executor: str = "here") -> TaskCost:
    return TaskCost(cpu, cpu, peak, executor)


def proof(key: UnitKey, *faults: str, rows: int = 5, candidate: int = 5, **of: Any) -> UnitProof:
    return UnitProof(key, Fingerprint(rows), Fingerprint(candidate), faults, cost(**of))


def rewrite(key: UnitKey, *findings: str, written: int = 3, marked: int = 2, **of: Any) -> Rewrite[Any]:
    return Rewrite(key, None, (), written, marked, findings, cost(**of))


def committed(version: int, *units: UnitKey, lost: tuple[tuple[UnitKey, str], ...] = ()) -> Committed:
    identity = VersionIdentity(version, "c" * 64, "a" * 64)
    return Committed(identity, version - 1, units, lost, VersionIdentity(version - 1, "d" * 64, "b" * 64))


def batch(published: Any, *proofs: UnitProof, rewrites: tuple[Any, ...] = ()) -> Batch:
    checked: Any = Mismatch(proofs, ()) if proofs else None
    return Batch(rewrites, checked, published, ())


def outcomes(found: Batch) -> list[tuple[str, Outcome, str | None]]:
    return [(str(unit.partition), unit.outcome, unit.reason) for unit in unit_results(found)]


def test_units_of_a_commit_are_verified_but_those_that_lost() -> None:
    found = batch(committed(4, ONE, lost=((TWO, "gone"),)), proof(ONE), proof(TWO))
    assert outcomes(found) == [("day=1", Outcome.VERIFIED, None), ("day=2", Outcome.CONFLICTED, "gone")]


def test_units_that_lost_before_any_proof_are_reported_as_well() -> None:
    assert outcomes(batch(Conflicted(((ONE, "base gone"),)))) == [("day=1", Outcome.CONFLICTED, "base gone")]
    found = batch(Conflicted(((ONE, "race"), (TWO, "race"))), proof(ONE))
    assert outcomes(found) == [("day=1", Outcome.CONFLICTED, "race"), ("day=2", Outcome.CONFLICTED, "race")]


def test_a_document_names_the_last_version_and_all_commits() -> None:
    done = (committed(4, ONE), committed(7, TWO))
    found = commits(done)
    assert (found["parent_version"], found["committed_version"]) == (6, 7)
    assert [(each.version, each.parent_version) for each in found["commits"]] == [(4, 3), (7, 6)]
    assert commits(()) == {}
    assert versions_of([batch(done[0]), batch(Conflicted(())), batch(None), batch(done[1])]) == (4, 7)


def test_costs_of_batches_add_up_and_the_peak_is_the_highest() -> None:
    first = batch(None, proof(ONE, cpu=0.5, peak=70), rewrites=(rewrite(ONE, cpu=2.0, peak=30),))
    second = batch(None, proof(TWO, cpu=0.25, peak=20, executor="there"), rewrites=(rewrite(TWO, cpu=1.0),))
    found = run_metrics(run_metrics(Metrics(), first), second)
    assert (found.rows, found.deleted_rows_marked, found.peak_task_memory) == (10, 4, 70)
    assert found.extra["rows_written"] == 6
    assert found.extra["cpu_seconds"] == {"rewrite": 3.0, "verify": 0.75}
    assert found.extra["executors"] == {"here": 3, "there": 1}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"rewrite": 4.0, "verify": 1.0}, 0.25),
        ({"rewrite": 0.0, "verify": 1.0}, None),
        ({"rewrite": 4.0}, None),
        ({}, None),
    ],
)
def test_the_share_of_the_gate_needs_both_times(seconds: dict[str, float], expected: float | None) -> None:
    assert share_of_rewrite(seconds) == expected


def test_sizes_of_either_side_are_kept_apart() -> None:
    after: Any = object()
    found = sizes(FileSizes((10, 20), (0, 5), 1), None, Metrics())
    found = sizes(FileSizes((30,), (None,), 4), after, found)
    assert (found.files_before, found.bytes_before, found.files_after, found.bytes_after) == (2, 30, 1, 30)
    assert found.extra["levels_before"] == {"0": 1, "5": 1} and found.extra["levels_after"] == {}
    assert found.extra["file_sizes_before"] == [10, 20] and found.deletion_vectors == 4


def test_units_that_a_document_does_not_report_have_failed() -> None:
    planned: Any = SimpleNamespace(units=[SimpleNamespace(key=key) for key in (ONE, TWO, THREE)])
    done = unit_results(batch(committed(4, TWO), proof(TWO)))
    found = unfinished(planned, done)
    assert [(unit.partition, unit.outcome) for unit in found] == [("day=1", Outcome.FAILED), ("day=3", Outcome.FAILED)]


def test_after_a_mismatch_proven_units_are_skipped() -> None:
    found = mismatched(Mismatch((proof(ONE), proof(TWO, "a", "b"), proof(THREE, candidate=4)), ()))
    assert [(unit.outcome, unit.reason) for unit in found] == [
        (Outcome.SKIPPED, "proven, but not published with the rest"),
        (Outcome.MISMATCH, "a; b"),
        (Outcome.MISMATCH, None),
    ]


def test_findings_of_the_rewrite_come_before_faults_and_differences() -> None:
    checked = Mismatch((proof(ONE, "bad"), proof(TWO, candidate=4)), ("whole",))
    said = ending_reason(checked, [rewrite(ONE, "two writers"), rewrite(TWO)])
    parts = said.split("; ")
    assert parts[:3] == ["day=1: two writers", "whole", "day=1: bad"]
    assert parts[3].startswith("day=2: rows differ, ") and len(parts) == 4
