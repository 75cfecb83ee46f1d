"""Typed columns of checkpoints against the texts they were made of: the writer's conversion by another one."""

import json
from typing import Any

import pytest
from tests.formats.delta.hand_log import HandLog

from nightkeep.formats.delta.commit.parsed_columns import partition_column, stats_column, stats_type
from nightkeep.formats.delta.gate.parsed_audit import partition_fault, stats_of_columns, stats_of_text
from nightkeep.formats.delta.metadata.schema import DeltaSchema, parse_schema

KINDS = (
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "decimal(5,2)",
    "decimal(38,10)",
    "string",
    "date",
    "timestamp",
    "timestamp_ntz",
    "boolean",
    "binary",
)
VALUES = [
    0,
    -1,
    127,
    128,
    1 << 31,
    1 << 63,
    0.1,
    -0.0,
    1e300,
    1e39,
    3.4028235e38,
    3.5,
    123.45,
    123.456,
    12345678901234567890123456,
    99999.99,
    "NaN",
    "-Infinity",
    "",
    "a",
    "\u00e4\U0010ffff",
    "1.25",
    "2024-02-29",
    "2024-02-30",
    "1582-10-10",
    "0001-01-01",
    "9999-12-31",
    "2024-01-01T00:00:00.123Z",
    "2024-01-01T00:00:00.123456Z",
    "2024-01-01T00:00:00.123",
    "2024-01-01T05:30:00+05:30",
    "1582-10-10T00:00:00.000Z",
    True,
    None,
    [],
    {},
]


def schema(kind: Any, *, partition: bool = False) -> DeltaSchema:
    columns = {"x": kind, "p": "long"} if not partition else {"x": "long", "p": kind}
    log = HandLog.__new__(HandLog)
    log.columns, log.partition_columns, log.configuration = columns, ("p",), {}  # type: ignore[misc]
    log.features = ("deletionVectors", "timestampNtz")
    return parse_schema(log.metadata["metaData"], log.protocol["protocol"])


@pytest.mark.parametrize("kind", KINDS)
def test_both_conversions_agree_on_every_value(kind: str) -> None:
    known = 0
    for value in VALUES:
        stats = {"numRecords": 3, "minValues": {"x": value}, "maxValues": {"x": value}, "nullCount": {"x": value}}
        text, table = json.dumps(stats), schema(kind)
        (found,) = stats_column([text], stats_type(table)).to_pylist()
        wanted = stats_of_text(table, text)
        assert stats_of_columns(table, found) == wanted, value
        known += any(name == "minValues.x" for name, _ in wanted or ())
    # Values of other types are unknown; a boolean and a binary have no bounds.
    assert (known == 0) == (kind in ("boolean", "binary"))


@pytest.mark.parametrize("text", [None, "", "{", "[]", "1", '"x"'])
def test_no_statistics_are_none(text: str | None) -> None:
    table = schema("long")
    (found,) = stats_column([text], stats_type(table)).to_pylist()
    assert found is None and stats_of_text(table, text) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("long", "7"),
        ("string", ""),
        ("string", "a"),
        ("date", "2024-02-29"),
        ("decimal(5,2)", "1.5"),
        ("double", "-0.0"),
        ("boolean", "true"),
        ("timestamp", "2024-01-01T00:00:00Z"),
        ("timestamp_ntz", "2024-01-01 00:00:00.5"),
        ("date", None),
    ],
)
def test_partition_values_have_to_be_the_texts(kind: str, text: str | None) -> None:
    table = schema(kind, partition=True)
    (found,) = partition_column(table, [{"p": text}], table="t").to_pylist()
    assert partition_fault(table, {"p": text}, found) is None
    other = {"p": None} if text else {"p": 5}
    assert partition_fault(table, {"p": text}, other) is not None
    assert partition_fault(table, {"p": text}, None) is not None


def test_a_number_beyond_doubles_is_no_bound() -> None:
    text, table = '{"numRecords":1,"minValues":{"x":1e999},"maxValues":{"x":1e999}}', schema("double")
    (found,) = stats_column([text], stats_type(table)).to_pylist()
    assert found["minValues"] == {"x": None} and stats_of_columns(table, found) == stats_of_text(table, text)
