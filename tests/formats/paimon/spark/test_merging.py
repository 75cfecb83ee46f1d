"""What Spark makes of the rows of a key, against the twin that goes through them one by one; checks of upgrades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout
from tests.formats.paimon.merge_twin import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, CannotMerge, Row, merged
from tests.formats.paimon.rewrite.test_fold import FUNCTIONS, TYPES, bits
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules, SequenceGroup
from nightkeep.formats.paimon.spark import merging
from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

VALUES: dict[str, list[Any]] = {
    "i": [None, -3, 0, 2],
    "t": [None, " ", "a", "b,a", "\u00e9"],
    "x": [None, 0.0, -0.0, 0.25, float("nan")],
    "d": [None, "0.01", "-2.50", "600.00"],
    "b": [None, True, False],
    "k": [7],
    "g": [None, 0, 1, 2],
    "h": [None, "", "a"],
}


def aggregation(random: Random) -> MergeRules:
    fields = {name: a_field(random, name) for name in TYPES}
    return MergeRules(MergeEngine.AGGREGATION, fields, False, random.random() < 0.5)


def update(random: Random) -> MergeRules:
    removes = random.random() < 0.5
    return MergeRules(
        engine=MergeEngine.PARTIAL_UPDATE,
        fields=dict.fromkeys(TYPES, FieldRule(Function.LAST_NON_NULL_VALUE)),
        ignores_deletes=not removes,
        removes_on_delete=removes,
    )


def groups(random: Random) -> MergeRules:
    """One group of two fields, or two of one. Half of the columns have a function."""
    names = random.choice([(("g", "h"),), (("g",), ("h",))])
    fields = {"k": FieldRule(Function.LAST_NON_NULL_VALUE)}
    fields |= {name: FieldRule(Function.SEQUENCE, group=n) for n, group in enumerate(names) for name in group}
    for name in "itxdb":
        told = a_field(random, name) if random.random() < 0.6 else FieldRule(Function.OF_GROUP)
        if told.function is Function.FIRST_NON_NULL_VALUE:
            told = FieldRule(Function.FIRST_VALUE, ignores_retracts=True)
        fields[name] = replace(told, group=random.randrange(len(names)))
    ignores = random.random() < 0.3
    return MergeRules(
        engine=MergeEngine.PARTIAL_UPDATE,
        fields={name: fields[name] for name in TYPES},
        ignores_deletes=ignores,
        removes_on_delete=False,
        groups=tuple(SequenceGroup(group, not ignores and random.random() < 0.5) for group in names),
    )


def a_field(random: Random, name: str) -> FieldRule:
    return FieldRule(
        random.choice(FUNCTIONS[name]), name != "k" and random.random() < 0.7, distinct=random.random() < 0.5
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(12), keep=3))
def test_spark_folds_as_java_does(seed: int, spark: SparkSession) -> None:
    random = Random(seed)
    told, looks_up = (groups, aggregation, update)[seed % 3](random), seed % 2 == 0
    keys: list[list[Row]] = [[a_row(random) for _ in range(random.randrange(1, 6))] for _ in range(60)]
    wanted, rows = [], []
    for key, some in enumerate(keys):
        try:
            is_tombstone = len(some) == 1 and some[0][0] in (UPDATE_BEFORE, DELETE)
            one = None if is_tombstone and not looks_up else merged(some, told)
        except CannotMerge:
            continue
        wanted += [] if one is None else [one]
        rows += [{"key": key, "place": place, "kind": kind, **values} for place, (kind, values) in enumerate(some)]
    system = pa.schema([("key", pa.int32()), ("place", pa.int32()), ("kind", pa.int8())])
    frame = spark.createDataFrame(
        pa.Table.from_pylist(rows, schema=pa.schema([*system, *(pa.field(n, t) for n, t in TYPES.items())]))
    )
    types = {field.name: field.dataType for field in frame.schema}
    found = merging.merged(
        frame,
        by=["key"],
        place=F.col("place"),
        fields=[(n, n, types[n]) for n in TYPES],
        rules=told,
        merges_single=looks_up,
    )
    answer = found.orderBy("key").toArrow().select(list(TYPES))
    expected = pa.table({name: pa.array([one[name] for one in wanted], kind) for name, kind in TYPES.items()})
    assert bits(answer) == bits(expected), told
    assert wanted


def a_row(random: Random) -> Row:
    values = {name: random.choice(some) for name, some in VALUES.items()}
    values["d"] = pa.scalar(values["d"], pa.string()).cast(TYPES["d"]).as_py()
    return random.choice([INSERT, UPDATE_AFTER, INSERT, UPDATE_BEFORE, DELETE]), values


ENGINES = {
    "groups": {
        "merge-engine": "partial-update",
        "fields.day.sequence-group": "n,note",
        "fields.n.aggregate-function": "sum",
    },
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.best.aggregate-function": "max",
        "fields.best.ignore-retract": "true",
    },
}


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_check_reads_what_was_merged(
    engine: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    columns = [("k", "INT NOT NULL"), ("n", "BIGINT"), ("best", "DOUBLE"), ("note", "STRING"), ("day", "INT")]
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true", **ENGINES[engine]}
    table = tmp_path / "t"
    paimon_java.create(table, Layout(columns=columns, primary_keys=["k"], options=options))
    paimon_java.write(table, [("+I", k, 1, k / 2, "first", 5) for k in range(200)])
    assert upgrade(table, full=True).outcome == "verified"
    late = [
        ("+I", k, None if k % 3 else 5, None, None if k % 2 else "new", 4 if k < 150 else 6) for k in range(100, 300)
    ]
    paimon_java.write(table, late)
    document = upgrade(table)
    assert document.outcome == "verified", document.reason
    assert (
        f"full rows of keys that are met again (merge-engine {ENGINES[engine]['merge-engine']})"
        in document.plan.units[0].reason
    )
    report = check(CheckRequest(Address("paimon", str(table), str(table))), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    rows = {row[0]: row for row in paimon_java.read(table).rows}
    # A late row of the group adds to the sum, and changes nothing else.
    assert (
        rows[102]
        == {
            "partial-update": (102, 5, 51.0, "new", 4),
            "aggregation": (102, 6, 51.0, "new", 4),
            "groups": (102, 6, 51.0, "first", 5),
        }[engine]
    )
    assert rows[152] == (152, 1, 76.0, "new", 6)
    assert len(rows) == 300
