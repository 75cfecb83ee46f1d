"""Which files are live in a snapshot, and which fields of one file differ between two descriptions."""

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.formats.iceberg.content_made import equality_of, file_of, vector_of
from tests.formats.iceberg.gate.test_audit_partitions import REALS, snapshot_of

from nightkeep.formats.iceberg.gate.live_files import changed_fields, live_files

FILE = file_of("d", raw={"record_count": 1, "value_counts": {1: 1}, "split_offsets": [4]})


def test_every_file_is_live_once() -> None:
    data, delete = file_of("d", partition=(1.0,)), equality_of("e", 2, partition=(1.0,))
    other = file_of("other", partition=(1.0,))
    vectors = [vector_of("v", 2, path, offset, partition=(1.0,)) for path, offset in (("d", 4), ("other", 50))]
    found = live_files(snapshot_of(REALS, 5, [data, other, delete, *vectors]))
    assert found == {file.identity: file for file in (data, other, delete, *vectors)}
    stray = replace(snapshot_of(REALS, 5, []), stray=(delete,))
    assert live_files(stray) == {delete.identity: delete}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"rows": 2}, ["rows"]),
        ({"raw": {**FILE.raw, "record_count": 2}, "rows": 2}, ["record_count", "rows"]),
        ({"raw": {**FILE.raw, "value_counts": {1: 2}}}, ["value_counts"]),
        ({"raw": {"record_count": 1, "value_counts": {1: 1}}}, ["split_offsets"]),
        ({"raw": {**FILE.raw, "key_metadata": None, "nan_value_counts": {}}}, []),
        ({"raw": {**FILE.raw, "first_row_id": 7}, "first_row_id": 7}, []),
        ({"partition": (math.nan,)}, ["partition"]),
    ],
)
def test_fields_that_differ_are_named(changes: dict[str, Any], names: list[str]) -> None:
    assert changed_fields(FILE, replace(FILE, **changes)) == names


def test_an_id_that_was_given_does_not_change() -> None:
    before = replace(FILE, first_row_id=7)
    assert changed_fields(before, replace(FILE, first_row_id=8)) == ["first_row_id"]
