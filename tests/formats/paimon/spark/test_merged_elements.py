"""What Spark makes of the arrays and maps of a key, against the twin that goes through them one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from tests.formats.paimon.element_twin import canonical
from tests.formats.paimon.merge_twin import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Row, merged
from tests.formats.paimon.rewrite.test_element_fold import TYPES
from tests.support.extended import some_extended

from nightkeep.formats.paimon.metadata.element_rules import ElementRule, NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules, SequenceGroup
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.spark import merging
from nightkeep.formats.paimon.spark.merged_elements import alike, as_text, parsed, with_elements
from nightkeep.formats.paimon.spark.nested_values import nested_text
from nightkeep.formats.paimon.spark.stored_times import StoredTimes
from nightkeep.spark.view import column

ROW: Mapping[str, Any] = {
    "type": "ROW",
    "fields": [
        {"id": 7, "name": "a", "type": "INT"},
        {"id": 8, "name": "b", "type": "STRING"},
        {"id": 9, "name": "s", "type": "DOUBLE"},
    ],
}
ROWS = {"type": "ARRAY", "element": ROW}
PAIMON: Mapping[str, Any] = {
    "k": "INT",
    "g": "INT",
    "c": {"type": "ARRAY", "element": "DOUBLE"},
    "e": ROWS,
    "m": {"type": "MAP", "key": "STRING", "value": "INT"},
    "r": ROWS,
    "p": ROWS,
}
SCHEMA = PaimonSchema(
    0, tuple(PaimonField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(PAIMON.items())), (), ("k",), {}
)


def rules(random: Random) -> MergeRules:
    rows = ElementRule(True, null_keys=random.choice([NullKeys.MERGE, NullKeys.IGNORE]))
    key = random.choice([("a",), ("a", "b")])
    keyed = replace(rows, key=key, sequence=random.choice([(), ("b",), ("s", "a")]))
    alone = ElementRule(True, limit=random.choice([None, 0, 2, 4]))
    told = {
        "c": FieldRule(Function.COLLECT, random.random() < 0.5, distinct=random.random() < 0.5, elements=ElementRule()),
        "e": FieldRule(Function.COLLECT, random.random() < 0.5, distinct=random.random() < 0.5, elements=rows),
        "m": FieldRule(Function.MERGE_MAP, random.random() < 0.3, elements=ElementRule()),
        "r": FieldRule(Function.NESTED_UPDATE, random.random() < 0.3, elements=random.choice([alone, keyed])),
        "p": FieldRule(Function.NESTED_PARTIAL_UPDATE, True, elements=replace(rows, key=key)),
    }
    if random.random() < 0.5:
        fields = {"k": FieldRule(Function.KEY), "g": FieldRule(Function.LAST_VALUE), **told}
        return MergeRules(MergeEngine.AGGREGATION, fields, False, random.random() < 0.3)
    grouped = {name: replace(rule, group=0) for name, rule in told.items()}
    return MergeRules(
        engine=MergeEngine.PARTIAL_UPDATE,
        fields={"k": FieldRule(Function.LAST_NON_NULL_VALUE), "g": FieldRule(Function.SEQUENCE, group=0), **grouped},
        ignores_deletes=False,
        removes_on_delete=False,
        groups=(SequenceGroup(("g",), random.random() < 0.5),),
    )


def a_row(random: Random) -> Row:
    def some(make: Any, most: int = 3) -> Any:
        return None if random.random() < 0.15 else [make() for _ in range(random.randrange(most + 1))]

    def nested() -> dict[str, Any]:
        return {
            "a": random.choice([None, 0, 1]),
            "b": random.choice([None, "", 'x"\n']),
            "s": random.choice([None, 0.0, -0.0, 1.5]),
        }

    def maybe() -> dict[str, Any] | None:
        return None if random.random() < 0.1 else nested()

    entries = {random.choice("ab'"): random.choice([None, 1, 2]) for _ in range(random.randrange(3))}
    values = {
        "k": 7,
        "g": random.choice([None, 0, 1, 2]),
        "c": some(lambda: random.choice([None, 0.0, -0.0, 2.5])),
        "e": some(nested),
        "m": random.choice([None, list(entries.items()), list(entries.items())]),
        "r": some(maybe),
        "p": some(maybe),
    }
    return random.choice([INSERT, UPDATE_AFTER, INSERT, UPDATE_BEFORE, DELETE]), values


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(12), keep=2))
def test_spark_folds_elements_as_java_does(seed: int, spark: SparkSession) -> None:
    random = Random(seed)
    told = rules(random)
    keys = [[a_row(random) for _ in range(random.randrange(1, 6))] for _ in range(60)]
    wanted = [None if (one := merged(rows, told)) is None else one for rows in keys]
    stored = [
        {"key": key, "place": place, "kind": kind, **values}
        for key, rows in enumerate(keys)
        for place, (kind, values) in enumerate(rows)
    ]
    # What the twin makes goes the way of stored values, to be compared as text.
    made = [{"key": key, "place": -1, "kind": 0, **one} for key, one in enumerate(wanted) if one is not None]
    expected = texts(with_elements(frame(spark, made), SCHEMA, told, alike))
    rows = with_elements(frame(spark, stored), SCHEMA, told, parsed)
    kinds = {field.name: field.dataType for field in rows.schema}
    found = merging.merged(
        rows,
        by=["key"],
        place=F.col("place"),
        fields=[(column(i), name, kinds[column(i)]) for i, name in enumerate(TYPES)],
        rules=told,
        merges_single=True,
    )
    answer = texts(with_elements(found, SCHEMA, told, lambda value, _, rule: as_text(value, rule)))
    assert answer == expected, told
    assert len(answer) > 20


def frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> Any:
    system = [pa.field("key", pa.int32()), pa.field("place", pa.int32()), pa.field("kind", pa.int8())]
    schema = pa.schema([*system, *(pa.field(name, kind) for name, kind in TYPES.items())])
    stored = spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))
    return stored.select("key", "place", "kind", *(value(n, field) for n, field in enumerate(SCHEMA.fields)))


def value(place: int, field: PaimonField) -> Column:
    stored = F.col(field.name)
    shown = nested_text(stored, field.type, field.type, StoredTimes()) if field.type.is_nested else stored
    return shown.alias(column(place))


def texts(rows: Any) -> Any:
    return [tuple(row) for row in rows.select("key", *(column(i) for i in range(len(TYPES)))).orderBy("key").collect()]


def test_a_text_distinguishes_values(spark: SparkSession) -> None:
    ordered = FieldRule(Function.COLLECT, elements=ElementRule())
    held = [[1.5, None], [None, 1.5], [1.5], [], None, [0.0], [-0.0]]
    rows = [{"key": n, "place": 0, "kind": 0, **dict.fromkeys(TYPES), "c": each} for n, each in enumerate(held)]
    kept = frame(spark, rows)
    for rule, different in ((ordered, 7), (replace(ordered, distinct=True), 6)):
        shown = [row[0] for row in kept.select(alike(F.col(column(2)), SCHEMA.fields[2].type, rule)).collect()]
        assert len(set(shown)) == different
        assert [json.loads(text) if text else None for text in shown[2:5]] == [["1.5"], [], None]
    assert canonical(ordered, [1.5, None]) != canonical(ordered, [None, 1.5])
