"""A file against its record: nothing is found where the record is right, and each number that lies is named."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tests.formats.paimon.made_bucket import INT, TEXT, MadeBucket, Row, buckets
from tests.support.examples import examples

from nightkeep.formats.paimon.gate.file_audit import file_faults
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.snapshot import data_file

ROWS = [Row(1, "b", 5), Row(3, None, 4), Row(5, "d", 9)]


def faults(
    rows: list[Row], lies: Mapping[str, Any] | None = None, *, group_rows: int = 2, vectors: bool = True
) -> list[str]:
    made = MadeBucket({} if vectors else {"deletion-vectors.enabled": "false"})
    made.add(5, rows, group_rows=group_rows)
    told = data_file({**made.files[0].record, **(lies or {})}, [INT])
    return list(file_faults(made.storage, made.bucket(), told))


def statistics(lows: list[Any], highs: list[Any], nulls: list[int] | None) -> dict[str, Any]:
    kinds = [INT, TEXT]
    return {"_MIN_VALUES": encode_row(lows, kinds), "_MAX_VALUES": encode_row(highs, kinds), "_NULL_COUNTS": nulls}


@settings(max_examples=examples(30))
@given(buckets())
def test_a_right_record_has_no_fault(made: MadeBucket) -> None:
    bucket = made.bucket()
    assert not [fault for f in bucket.files if f.level for fault in file_faults(made.storage, bucket, f)]


@pytest.mark.parametrize("group_rows", [1, 2, 9])
@pytest.mark.parametrize(
    ("lies", "named"),
    [
        ({"_DELETE_ROW_COUNT": 1}, "deleteRowCount 1"),
        ({"_DELETE_ROW_COUNT": None}, "deleteRowCount None"),
        ({"_MIN_SEQUENCE_NUMBER": 3}, "sequence numbers 4 to 9, metadata states 3 to 9"),
        ({"_MAX_SEQUENCE_NUMBER": 10}, "sequence numbers 4 to 9, metadata states 4 to 10"),
        ({"_MIN_KEY": encode_row((0,), (INT,))}, "first or last key differs"),
        ({"_MAX_KEY": encode_row((6,), (INT,))}, "first or last key differs"),
        ({"_VALUE_STATS": statistics([1, "b"], [5, "d"], [0, 0])}, "v has 1 nulls, statistics state 0"),
        ({"_VALUE_STATS": statistics([1, "c"], [5, "d"], [0, 1])}, "v has a value below the minimum"),
        ({"_VALUE_STATS": statistics([1, "b"], [5, "c"], [0, 1])}, "v has a value above the maximum"),
        ({"_VALUE_STATS": statistics([2, None], [5, None], None)}, "k has a value below the minimum"),
    ],
)
def test_a_number_that_lies_is_named(lies: dict[str, Any], named: str, group_rows: int) -> None:
    (fault,) = faults(ROWS, lies, group_rows=group_rows)
    assert fault.startswith("bucket-0/data-0.parquet: ")
    assert re.search(named, fault), fault


@pytest.mark.parametrize("group_rows", [1, 2])
@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([Row(1, kind=3), Row(2)], "holds retracts"),
        ([Row(1, kind=1), Row(2)], "holds retracts"),
        ([Row(1), Row(2), Row(2)], "keys do not ascend strictly"),
        ([Row(1), Row(3), Row(2), Row(4)], "keys do not ascend strictly"),
    ],
)
def test_rows_that_may_not_be_there_are_named(rows: list[Row], named: str, group_rows: int) -> None:
    assert any(named in fault for fault in faults(rows, {"_DELETE_ROW_COUNT": 0}, group_rows=group_rows))


def test_wider_statistics_of_texts_are_right_and_absent_ones_claim_nothing() -> None:
    keys = [row.key for row in ROWS]
    assert faults(ROWS, {"_VALUE_STATS": statistics([min(keys), "a"], [max(keys), "z"], [0, 1])}) == []
    for wider in (statistics([0, "a"], [max(keys), "z"], [0, 1]), statistics([min(keys), "a"], [9, "z"], [0, 1])):
        (fault,) = faults(ROWS, {"_VALUE_STATS": wider})
        assert "k has no value at an end of the range" in fault
    assert faults(ROWS, {"_VALUE_STATS": statistics([None, None], [None, None], None)}) == []
    only_value = {"_MIN_VALUES": encode_row(("b",), (TEXT,)), "_MAX_VALUES": encode_row(("d",), (TEXT,))}
    dense = {"_VALUE_STATS": {**only_value, "_NULL_COUNTS": [1]}, "_VALUE_STATS_COLS": ["v"]}
    assert faults(ROWS, dense) == []
    assert faults(ROWS, {**dense, "_VALUE_STATS": {**only_value, "_NULL_COUNTS": [2]}})


def test_a_file_without_rows_is_none_to_be_there() -> None:
    made = MadeBucket()
    made.add(5, ROWS)
    path = "bucket-0/data-0.parquet"
    empty, sink = pq.read_table(made.storage.open(path)).slice(0, 0), pa.BufferOutputStream()
    pq.write_table(empty, sink)
    made.held.files[path] = sink.getvalue().to_pybytes()
    told = data_file({**made.files[0].record, "_ROW_COUNT": 0}, [INT])
    assert list(file_faults(made.storage, made.bucket(), told)) == [f"{path}: no rows, expected no file"]


@pytest.mark.parametrize(("told", "named"), [(1, None), (0, "deleteRowCount 0, expected 1"), (None, "expected 1")])
def test_without_vectors_retracts_are_counted(told: int | None, named: str | None) -> None:
    """A reader that merges nothing goes by the count, and would show deleted rows."""
    found = faults([Row(1, kind=3), Row(2)], {"_DELETE_ROW_COUNT": told}, vectors=False)
    assert [named in fault for fault in found] == ([] if named is None else [True])
