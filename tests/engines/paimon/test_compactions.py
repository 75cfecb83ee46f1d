"""Tables without deletion vectors: compacted by us and by Java in turn, beside writers, and never with a wrong row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.contents import files, leftovers
from tests.formats.paimon.keeping import aged, expired, orphans
from tests.formats.paimon.upgrade import optimize, upgrade
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.formats.paimon.data.columns import SEQUENCE
from nightkeep.formats.paimon.rewrite import rewrite, winners
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask
from nightkeep.kernels import merge
from nightkeep.model import Address, Fingerprint, Operation, Outcome, TaskCost, UnitProof, Verified, VerifyLevel
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import CheckReport
from nightkeep.running.rewrites import run_operation

COLUMNS = [("k", "INT NOT NULL"), ("day", "INT"), ("n", "BIGINT"), ("note", "STRING")]
PLAIN = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "3"}
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "by day": {"sequence.field": "day"},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
}
OF_ALL = pytest.mark.parametrize("engine", some_extended(ENGINES, keep=2))
Rows = list[tuple[Any, ...]]


def made(engine: PaimonJava, table: Path, options: Mapping[str, str]) -> Path:
    """A base on the top level, and two small level-0 files with nulls, late rows and deletes over some of it."""
    engine.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options={**PLAIN, **options}))
    engine.write(table, [("+I", k, 5, 1, f"first {k} of a base that is large {k * k}") for k in range(3000)])
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    return more(engine, table)


def more(engine: PaimonJava, table: Path) -> Path:
    _write(engine, table, [("+I", k, 3 if k % 2 else 7, k, None) for k in range(50, 90)])
    _write(engine, table, [("-D" if k % 5 == 0 else "+U", k, 9, 2, "last") for k in range(60, 120)])
    return table


def _write(engine: PaimonJava, table: Path, rows: Rows) -> None:
    engine.write(table, rows, Writer(user="writer"))


def read(engine: PaimonJava, table: Path) -> Rows:
    return sorted(engine.read(table).rows)


def second_opinion(table: Path, spark: SparkSession, **asked: Any) -> CheckReport:
    return check(CheckRequest(Address("paimon", str(table), table.name), **asked), spark=spark)


@pytest.mark.few(1)
@OF_ALL
def test_readers_see_the_same_rows_whoever_compacts_next(
    engine: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", ENGINES[engine])
    for full in (False, True):
        truth = read(paimon_java, table)
        document = optimize(table, full=full)
        assert document.outcome is Outcome.VERIFIED, document.reason
        assert read(paimon_java, table) == truth
        report = second_opinion(table, spark, base_version=document.base_version)
        assert report.status is CheckStatus.PASSED, str(report)
        paimon_java.compact(more(paimon_java, table), Compaction(full=full, user="compactor", single_pick=True))
        more(paimon_java, table)
    paimon_java.compact(table, Compaction(full=True, user="compactor"))
    truth = read(paimon_java, table)
    assert optimize(table, full=True).outcome is Outcome.UNCHANGED
    _write(paimon_java, table, [("+I", 5000, 9, 9, "new")])
    assert optimize(table).outcome is Outcome.UNCHANGED
    paimon_java.expire(table)
    assert [row for row in read(paimon_java, table) if row[0] < 5000] == truth


def test_a_delete_stays_as_long_as_an_older_row_is_below(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {})
    truth = read(paimon_java, table)
    assert [row for row in truth if row[0] == 60] == []
    assert "deletes stay" in optimize(table).plan.units[0].reason  # type: ignore[union-attr]
    kept = [file for file in paimon_java.files(table) if file.level == 2]
    assert sum(file.delete_rows or 0 for file in kept) == 12
    assert "deletes end here" in optimize(table, full=True).plan.units[0].reason  # type: ignore[union-attr]
    assert [file.delete_rows for file in paimon_java.files(table)] == [0]
    assert read(paimon_java, table) == truth


def test_sweep_and_expiry_keep_what_readers_need(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    truth = read(paimon_java, table)
    assert optimize(table).outcome is Outcome.VERIFIED
    assert orphans(table) == []
    aged(table)
    assert orphans(table) == []
    before = files(table)
    assert expired(table, older_than_ms=1).outcome is Outcome.VERIFIED
    assert len(files(table)) < len(before)
    assert read(paimon_java, table) == truth
    assert paimon_java.delete_orphans(table)["files"] == []


@pytest.mark.few(1)
@pytest.mark.parametrize("before", ["publish", "link"])
def test_an_append_meanwhile_is_kept(before: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {})
    with waiting(table, before=before, operation=Operation.OPTIMIZE) as ours:
        _write(paimon_java, table, [("+U", 61, 9, 1, "late"), ("-D", 62, 9, 1, None), ("+I", 9000, 1, 1, "new")])
        truth = read(paimon_java, table)
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert document["committed_version"] == document["base_version"] + 2
    assert read(paimon_java, table) == truth
    report = second_opinion(table, spark, base_version=document["base_version"])
    assert report.status is CheckStatus.PASSED, str(report)
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert read(paimon_java, table) == truth


@pytest.mark.few(2)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("before", ["publish", "link"])
def test_a_compaction_of_the_same_files_wins(before: str, full: bool, paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {})
    truth, held = read(paimon_java, table), files(table)
    with waiting(table, before=before, operation=Operation.OPTIMIZE) as ours:
        paimon_java.compact(table, Compaction(full=full, user="compactor"))
        document = ours.go_on()
    assert document["outcome"] == Outcome.CONFLICTED, document["reason"]
    assert not [name for name in leftovers(table, held) if "nk-" in name]
    assert read(paimon_java, table) == truth


def test_a_compaction_that_java_prepared_before_ours_is_rejected(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {})
    truth = read(paimon_java, table)
    prepared = paimon_java.prepare_compact(table, Compaction(user="compactor"))
    assert prepared.handle is not None
    assert optimize(table).outcome is Outcome.VERIFIED
    with pytest.raises(Exception, match="File deletion conflicts"):
        paimon_java.commit_prepared(prepared.handle)
    assert read(paimon_java, table) == truth


def test_either_operation_refuses_the_other_kind_of_table(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t", {})
    assert upgrade(table).outcome is Outcome.REFUSED
    paimon_java.create(
        tmp_path / "v",
        Layout(columns=COLUMNS, primary_keys=["k"], options={**PLAIN, "deletion-vectors.enabled": "true"}),
    )
    _write(paimon_java, tmp_path / "v", [("+I", 1, 1, 1, "a")])
    document = optimize(tmp_path / "v")
    assert (document.outcome, "use upgrade" in str(document.reason)) == (Outcome.REFUSED, True)


Patch = Callable[[pytest.MonkeyPatch], None]
_winners, _rewrite, merge_sorted = winners.winners, rewrite.rewrite, rewrite.merge_sorted


def tombstones_go_too_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite, "winners", lambda rows, bucket, **_: _winners(rows, bucket, drops_retracts=True))


def tombstones_never_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite, "winners", lambda rows, bucket, **_: _winners(rows, bucket, drops_retracts=False))


def an_older_row_wins(patch: pytest.MonkeyPatch) -> None:
    def oldest(rows: pa.Table, *, keys: Any, order: Any) -> Any:
        descending = [merge.OrderBy(by.column, merge.Direction.DESCENDING) for by in order]
        return merge.keep_latest(rows, keys=keys, order=descending)

    patch.setattr(winners, "keep_latest", oldest)


def a_key_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite, "winners", lambda rows, bucket, **how: _winners(rows, bucket, **how)[1:])


def changed_chunks(change: Callable[[pa.Table], pa.Table]) -> Patch:
    completed = rewrite.completed

    def wrongly(*sources: Any, **how: Any) -> Iterator[pa.Table]:
        yield from map(change, completed(*sources, **how))

    return lambda patch: patch.setattr(rewrite, "completed", wrongly)


def _with(rows: pa.Table, name: str, values: Any) -> pa.Table:
    place = rows.column_names.index(name)
    return rows.set_column(place, rows.schema.field(name), values)


a_value_is_from_another_row = changed_chunks(
    lambda rows: _with(rows, "n", rows.column("n").take([*range(1, rows.num_rows), 0]))
)
sequence_numbers_are_new = changed_chunks(
    lambda rows: _with(rows, SEQUENCE, pc.add(rows.column(SEQUENCE), pa.scalar(1 << 40)))
)
sequence_numbers_are_lost = changed_chunks(
    lambda rows: _with(rows, SEQUENCE, pa.array(np.zeros(rows.num_rows, np.int64)))
)


def merged_without_the_last(patch: pytest.MonkeyPatch) -> None:
    def wrongly(rows: pa.Table, starts: Any, rules: Any, **how: Any) -> pa.Table:
        rules = replace(rules, removes_on_delete=False, ignores_deletes=True)
        return merge_sorted(rows, starts, rules, **how)

    patch.setattr(rewrite, "merge_sorted", wrongly)


def retracts_stay(patch: pytest.MonkeyPatch) -> None:
    def wrongly(storage: Any, task: UpgradeTask, run: Any) -> Any:
        return _rewrite(storage, replace(task, drops_retracts=False), run)

    patch.setattr("nightkeep.formats.paimon.format.rewrite", wrongly)


SABOTAGE: list[tuple[str, Patch, bool, bool]] = [
    # engine, damage, full compaction, whether readers would see it at once
    ("deduplicate", tombstones_go_too_early, False, True),
    ("deduplicate", tombstones_never_go, True, False),
    ("deduplicate", an_older_row_wins, False, True),
    ("deduplicate", an_older_row_wins, True, True),
    ("by day", an_older_row_wins, True, True),
    ("deduplicate", a_key_is_lost, True, True),
    ("deduplicate", a_value_is_from_another_row, False, True),
    ("deduplicate", a_value_is_from_another_row, True, True),
    ("deduplicate", sequence_numbers_are_new, False, False),
    ("deduplicate", sequence_numbers_are_lost, False, True),
    ("deduplicate", sequence_numbers_are_lost, True, False),
    ("partial-update", merged_without_the_last, False, True),
    ("partial-update", a_value_is_from_another_row, True, True),
    ("partial-update", retracts_stay, True, False),
    ("aggregation", sequence_numbers_are_new, True, False),
]
NAMES = [f"{engine}-{act.__name__}-{'full' if full else 'minor'}" for engine, act, full, _ in SABOTAGE]


@pytest.mark.in_turn("level")
@pytest.mark.parametrize("level", ["full", "touched"])
@pytest.mark.parametrize(("engine", "act", "full", "seen"), SABOTAGE, ids=NAMES)
def test_a_wrong_compaction_is_not_published(
    engine: str, act: Patch, full: bool, seen: bool, level: str, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", ENGINES[engine])
    before = paimon_java.snapshots(table)
    with pytest.MonkeyPatch.context() as patch:
        act(patch)
        document = optimize(table, full=full, verify=level)
    assert (document.outcome, paimon_java.snapshots(table)) == (Outcome.MISMATCH, before), document.reason
    assert [unit.equal for unit in document.units] == [not seen]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("engine", "act"),
    [
        ("deduplicate", tombstones_go_too_early),
        ("by day", an_older_row_wins),
        ("partial-update", merged_without_the_last),
        ("aggregation", a_value_is_from_another_row),
    ],
)
def test_the_check_finds_it_on_its_own(
    engine: str, act: Patch, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", ENGINES[engine])
    with asleep(), pytest.MonkeyPatch.context() as patch:
        act(patch)
        document = optimize(table)
    assert document.committed_version is not None
    assert second_opinion(table, spark, base_version=document.base_version).status is CheckStatus.FAILED


@contextmanager
def asleep() -> Iterator[None]:
    """A gate that lets everything pass."""

    def nothing(opened: Any, plan: Any, rewrites: Any, candidate: Any, **how: Any) -> Verified[Any, Any]:
        cost = TaskCost(0.0, 0.0, 0, "")
        proofs = tuple(UnitProof(key, Fingerprint(), Fingerprint(), (), cost) for key in candidate.units)
        return Verified(plan, candidate, rewrites, proofs, VerifyLevel.FULL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_operation, "verify", nothing)
        yield
