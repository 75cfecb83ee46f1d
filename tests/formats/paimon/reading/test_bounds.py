"""Statistics of manifest entries as bounds: of older schemas, of keys and values, damaged ones."""

from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from tests.formats.paimon.made_bucket import MadeBucket, Row

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, Schemas
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.reading.bounds import file_spans, partition_spans


def bucket_of(now: PaimonSchema | None = None, **record: Any) -> Bucket:
    """A file of two rows, read with the columns of `now`; `record` changes its entry."""
    made = MadeBucket()
    made.add(5, [Row(3, "b"), Row(9, None)])
    bucket = made.bucket()
    (file,) = bucket.files
    schemas = bucket.schemas if now is None else Schemas(now, bucket.schemas.by_id)
    return replace(bucket, files=(replace(file, record={**file.record, **record}),), schemas=schemas)


def schema(*columns: tuple[int, str, str]) -> PaimonSchema:
    fields = tuple(PaimonField(number, name, parse_type(kind)) for number, name, kind in columns)
    return PaimonSchema(1, fields, (), (fields[0].name,), MappingProxyType({}))


def shown(bucket: Bucket, *names: str) -> dict[str, tuple[Any, ...]]:
    spans = file_spans(bucket, {(name,) for name in names})
    return {
        path[0]: tuple(each[0].as_py() for each in (one.lows, one.highs, one.nulls, one.rows))
        for path, one in spans.items()
    }


def test_bounds_are_those_of_the_entry() -> None:
    assert shown(bucket_of(), "k", "v") == {"k": (3, 9, 0, 2), "v": ("b", "b", 1, 2)}


def test_columns_are_found_by_id_and_added_ones_are_null() -> None:
    now = schema((0, "key", "BIGINT"), (1, "text", "STRING"), (7, "v", "INT"))
    assert shown(bucket_of(now), "key", "text", "v") == {
        "key": (3, 9, 0, 2),
        "text": ("b", "b", 1, 2),
        "v": (None, None, 2, 2),
    }


def test_bounds_of_a_type_that_is_written_otherwise_are_unknown() -> None:
    now = schema((0, "k", "DECIMAL(20, 2)"), (1, "v", "STRING"))
    assert shown(bucket_of(now), "k") == {"k": (None, None, None, 2)}


def test_dense_statistics_name_their_columns() -> None:
    none = {"_MIN_VALUES": encode_row((), ()), "_MAX_VALUES": encode_row((), ()), "_NULL_COUNTS": []}
    found = shown(bucket_of(_VALUE_STATS=none, _VALUE_STATS_COLS=[]), "k", "v")
    assert found == {"k": (3, 9, 0, 2), "v": (None, None, None, 2)}
    one = {"_MIN_VALUES": encode_row(("a",), (TEXT,)), "_MAX_VALUES": encode_row(("c",), (TEXT,)), "_NULL_COUNTS": None}
    assert shown(bucket_of(_VALUE_STATS=one, _VALUE_STATS_COLS=["v"]), "v") == {"v": ("a", "c", None, 2)}


TEXT = parse_type("STRING")
ENDS = {"_MIN_VALUES": encode_row((1, "a"), (parse_type("INT"), TEXT)), "_NULL_COUNTS": [0, 0]}


@pytest.mark.parametrize(
    "record",
    [
        {"_VALUE_STATS": {**ENDS, "_MAX_VALUES": b"\x00\x00\x00\x02garbage"}},
        {"_VALUE_STATS": {**ENDS, "_MAX_VALUES": encode_row((1,), (parse_type("INT"),))}},
        {"_VALUE_STATS": {**ENDS, "_MAX_VALUES": ENDS["_MIN_VALUES"], "_NULL_COUNTS": [0]}},
        {"_VALUE_STATS": {**ENDS, "_MAX_VALUES": ENDS["_MIN_VALUES"]}, "_VALUE_STATS_COLS": ["v", "gone"]},
        {"_KEY_STATS": {}},
    ],
)
def test_damaged_statistics_are_unknown(record: dict[str, Any]) -> None:
    found = file_spans(bucket_of(**record), {("v",)})[("v",)]
    assert found.highs.to_pylist() == [None if "_VALUE_STATS" in record else "b"]


def test_a_bound_that_is_cut_within_a_character_is_unknown_alone() -> None:
    row = encode_row((1, "\u00e4"), (parse_type("INT"), TEXT))
    cut = row.replace("\u00e4".encode(), b"\xc3\x28")
    assert cut != row
    stats = {**ENDS, "_MAX_VALUES": cut}
    found = file_spans(bucket_of(_VALUE_STATS=stats), {("k",), ("v",)})
    assert found[("v",)].highs.to_pylist() == [None] and found[("v",)].lows.to_pylist() == ["a"]
    assert found[("k",)].highs.is_valid().to_pylist() == [True]


def test_a_schema_that_is_gone_is_named() -> None:
    bucket = bucket_of()
    with pytest.raises(CorruptMetadata, match="expected a schema among"):
        file_spans(replace(bucket, schemas=Schemas(bucket.schemas.current, {})), {("k",)})


def test_hostile_counts_state_nothing() -> None:
    stats = {**ENDS, "_MAX_VALUES": ENDS["_MIN_VALUES"], "_NULL_COUNTS": [-1, True]}
    found = shown(bucket_of(_VALUE_STATS=stats), "k", "v")
    assert (found["k"][2], found["v"][2]) == (None, None)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("STRING", "a/b", "a/b"),
        ("INT", None, None),
        ("DECIMAL(9, 2)", Decimal("1.50"), Decimal("1.50")),
        ("BOOLEAN", True, True),
    ],
)
def test_a_partition_value_is_both_bounds(kind: str, value: Any, expected: Any) -> None:
    field = PaimonField(5, "day", parse_type(kind))
    bucket = bucket_of()
    now = replace(bucket.schemas.current, fields=(*bucket.schemas.current.fields, field), partition_keys=("day",))
    placed = replace(
        bucket, partition_bytes=encode_row((value,), (field.type,)), schemas=Schemas(now, {0: bucket.schemas.current})
    )
    (one,) = partition_spans(placed, {("day",), ("k",)}).values()
    assert (one.lows[0].as_py(), one.highs[0].as_py(), one.nulls[0].as_py()) == (expected, expected, value is None)
    assert file_spans(placed, {("day",)})[("day",)].lows.to_pylist() == [expected]
