"""Tables whose merge engine makes one row of several: what is wrong with a merge is found before it is published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan
from tests.formats.paimon.upgrade import upgrade

from nightkeep.formats.paimon.metadata.merge_engine import Function, MergeRules, SequenceGroup
from nightkeep.formats.paimon.rewrite import rewrite
from nightkeep.formats.paimon.rewrite.fold import fold
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("day", "INT"), ("n", "BIGINT"), ("best", "DOUBLE"), ("note", "STRING")]
OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
UPDATES = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
AGGREGATES = {
    "merge-engine": "aggregation",
    "sequence.field": "day",
    "fields.n.aggregate-function": "sum",
    "fields.best.aggregate-function": "max",
    "fields.best.ignore-retract": "true",
}
GROUPED = {
    "merge-engine": "partial-update",
    "fields.day.sequence-group": "n,note",
    "fields.n.aggregate-function": "sum",
    "partial-update.remove-record-on-sequence-group": "day",
}
Wrong = Callable[[pa.Table, Rows, MergeRules], pa.Table]


def made(paimon_java: PaimonJava, table: Path, engine: Mapping[str, str]) -> Path:
    """Rows on the top level, and two level-0 files over half of them, with nulls, deletes and late rows."""
    paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options={**OPTIONS, **engine}))
    paimon_java.write(table, [("+I", k, 5, 1, k / 2, f"first {k}") for k in range(100)])
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    paimon_java.write(table, [("+I", k, 3 if k % 2 else 7, k, -1.0, None) for k in range(50, 150)])
    paimon_java.write(table, [("-D" if k % 5 == 0 else "+U", k, 9, 2, None, "last") for k in range(60, 90)])
    return table


def wrong_rules(change: Mapping[Function, Function]) -> Wrong:
    def wrongly(rows: pa.Table, starts: Rows, rules: MergeRules, **more: Any) -> pa.Table:
        fields = {
            name: replace(rule, function=change.get(rule.function, rule.function))
            for name, rule in rules.fields.items()
        }
        return fold(rows, starts, replace(rules, fields=fields), **more)

    return wrongly


def keeps_deleted(rows: pa.Table, starts: Rows, rules: MergeRules, **more: Any) -> pa.Table:
    return fold(rows, starts, replace(rules, removes_on_delete=False, ignores_deletes=True), **more)


def without_order(rows: pa.Table, starts: Rows, rules: MergeRules, **more: Any) -> pa.Table:
    """Whatever arrives last is the newest of its group."""
    return fold(rows, starts, replace(rules, groups=(SequenceGroup(("k",), removes=True),)), **more)


def keeps_removed(rows: pa.Table, starts: Rows, rules: MergeRules, **more: Any) -> pa.Table:
    return fold(rows, starts, replace(rules, groups=tuple(replace(g, removes=False) for g in rules.groups)), **more)


def first_two_swapped(rows: pa.Table, starts: Rows, rules: MergeRules, **more: Any) -> pa.Table:
    found = fold(rows, starts, rules, **more)
    notes = found.column("note").take([1, 0, *range(2, found.num_rows)])
    return found.set_column(found.column_names.index("note"), found.schema.field("note"), notes)


SABOTAGE: Mapping[str, tuple[Mapping[str, str], Wrong]] = {
    "nulls overwrite": (UPDATES, wrong_rules({Function.LAST_NON_NULL_VALUE: Function.LAST_VALUE})),
    "the first row stays": (UPDATES, wrong_rules({Function.LAST_NON_NULL_VALUE: Function.FIRST_NON_NULL_VALUE})),
    "deleted rows stay": (UPDATES, keeps_deleted),
    "values change places": (UPDATES, first_two_swapped),
    "the least is taken": (AGGREGATES, wrong_rules({Function.MAX: Function.MIN})),
    "late rows win in a group": (GROUPED, without_order),
    "a group that removes keeps": (GROUPED, keeps_removed),
    "a group keeps its least sequence": (GROUPED, wrong_rules({Function.SEQUENCE: Function.MIN})),
    "a sum of a group is its last value": (GROUPED, wrong_rules({Function.SUM: Function.LAST_VALUE})),
    "a sum is a maximum": (AGGREGATES, wrong_rules({Function.SUM: Function.LAST_VALUE})),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_wrong_merge_is_not_published(
    name: str, paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, wrongly = SABOTAGE[name]
    table = made(paimon_java, tmp_path / "t", engine)
    before = paimon_java.snapshots(table)
    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "fold", wrongly)
        document = upgrade(table)
    assert (document.outcome, paimon_java.snapshots(table)) == (Outcome.MISMATCH, before)
    assert [unit.equal for unit in document.units] == [False]


@pytest.mark.parametrize("engine", [UPDATES, AGGREGATES, GROUPED], ids=["partial-update", "aggregation", "groups"])
def test_readers_see_after_us_what_a_merge_showed_before(
    engine: Mapping[str, str], paimon_java: PaimonJava, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", engine)
    merged = sorted(paimon_java.read(table, Scan(options=MERGE_ON_READ)).rows)
    assert sorted(paimon_java.read(table).rows) != merged
    document = upgrade(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert sorted(paimon_java.read(table).rows) == merged
    lag = document.metrics.extra["lag"]
    assert isinstance(lag, Mapping)
    assert (lag["before"]["level0_files"], lag["before"]["level0_rows"], lag["after"]["level0_files"]) == (2, 130, 0)
    assert document.plan.units[0].extra["level0_rows"] == 130


def test_a_row_that_javas_compaction_would_change_stays_as_readers_see_it(
    paimon_java: PaimonJava, tmp_path: Path
) -> None:
    """A group with values and no sequence: Java's readers show the only row of a key as it is stored."""
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    for table in (theirs, mine):
        paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options={**OPTIONS, **GROUPED}))
        paimon_java.write(table, [("+I", 1, None, 7, 0.5, "alone"), ("+I", 2, None, 7, 0.5, "first")])
        paimon_java.write(table, [("+I", 2, None, 8, None, "second")])
    merged = sorted(paimon_java.read(mine, Scan(options=MERGE_ON_READ)).rows)
    assert merged == [(1, None, 7, 0.5, "alone"), (2, None, None, 0.5, None)]
    paimon_java.compact(theirs, Compaction(full=True))
    assert sorted(paimon_java.read(theirs).rows)[0] == (1, None, None, 0.5, None)
    assert upgrade(mine, full=True).outcome is Outcome.VERIFIED
    assert sorted(paimon_java.read(mine).rows) == merged


@pytest.mark.extended
def test_retracts_of_the_time_before_they_were_ignored_delete_nothing(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java's readers skip them, and its lookup compaction deletes what they meet: the rows that readers see stay."""
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    for table in (theirs, mine):
        paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options=OPTIONS))
        paimon_java.write(table, [("+I", k, 5, 1, k / 2, "first") for k in range(2000)])
        paimon_java.compact(table, Compaction(full=True))
        paimon_java.write(table, [("-D", 3, 5, 1, 1.5, "first"), ("+I", 4, 6, 2, 2.0, "second")])
        paimon_java.alter(table, {"change": "set_option", "name": "ignore-delete", "value": "true"})
    merged = sorted(paimon_java.read(mine, Scan(options=MERGE_ON_READ)).rows)
    assert [row[0] for row in merged] == list(range(2000))
    paimon_java.compact(theirs, Compaction())
    assert [row[0] for row in sorted(paimon_java.read(theirs).rows)] == [0, 1, 2, *range(4, 2000)]
    document = upgrade(mine)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert sorted(paimon_java.read(mine).rows) == merged


def test_a_retract_that_the_engine_does_not_take_is_named(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java's writer lets a single retract through; its compaction fails, as ours does."""
    table = tmp_path / "t"
    options = {**OPTIONS, "merge-engine": "partial-update"}
    paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options=options))
    paimon_java.write(table, [("+I", k, 5, 1, 0.5, "first") for k in range(9)])
    paimon_java.write(table, [("-D", 3, 5, 1, 0.5, "first")])
    document = upgrade(table)
    assert document.outcome is Outcome.FAILED
    assert "expected no row of kind -U or -D in a partial update" in str(document.reason)
