"""Split offsets and column sizes beside a footer, of flat and nested columns and of any number of row groups."""

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.iceberg.content_made import file_of

from nightkeep.formats.iceberg.gate.footer_audit import footer_faults


def _field(name: str, kind: pa.DataType, number: int) -> Any:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


SCHEMA = pa.schema(
    [
        _field("id", pa.int64(), 1),
        _field("s", pa.struct([_field("a", pa.string(), 3), _field("b", pa.float64(), 4)]), 2),
        _field("l", pa.list_(_field("element", pa.int32(), 6)), 5),
        _field("m", pa.map_(_field("key", pa.string(), 8).with_nullable(False), _field("value", pa.int64(), 9)), 7),
    ]
)
ROW: Mapping[str, object] = {"id": 1, "s": {"a": "x", "b": 0.5}, "l": [1, 2], "m": [("k", 7)]}
IDS = {"id": 1, "s.a": 3, "s.b": 4, "l.list.element": 6, "m.key_value.key": 8, "m.key_value.value": 9}
"""By the paths of Parquet's columns."""


def footer_of(rows: int, group_rows: int, *, dictionaries: bool) -> pq.FileMetaData:
    sink = io.BytesIO()
    table = pa.Table.from_pylist([dict(ROW)] * rows, schema=SCHEMA)
    pq.write_table(table, sink, row_group_size=group_rows, use_dictionary=dictionaries)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def told(footer: pq.FileMetaData) -> dict[str, Any]:
    """What is right, column by column."""
    groups = footer.to_dict()["row_groups"]
    sizes = dict.fromkeys(IDS.values(), 0)
    for column in (column for group in groups for column in group["columns"]):
        sizes[IDS[column["path_in_schema"]]] += column["total_compressed_size"]
    firsts = [group["columns"][0] for group in groups]
    starts = [first["dictionary_page_offset"] or first["data_page_offset"] for first in firsts]
    return {"split_offsets": starts, "column_sizes": sizes}


def faults(footer: pq.FileMetaData, **raw: Any) -> str:
    return "; ".join(footer_faults(footer, file_of("d", raw=raw)))


@given(rows=st.integers(1, 40), group_rows=st.integers(1, 40), dictionaries=st.booleans())
def test_what_the_footer_states_is_no_fault_and_anything_else_is(
    rows: int, group_rows: int, dictionaries: bool
) -> None:
    footer = footer_of(rows, group_rows, dictionaries=dictionaries)
    right = told(footer)
    starts, sizes = right["split_offsets"], right["column_sizes"]
    assert faults(footer, **right) == ""
    for offsets in ([], starts[:-1], [starts[0] + 1, *starts[1:]], [*starts, starts[-1] + 1]):
        assert f"split offsets {offsets}, its row groups begin at {starts}" in faults(footer, split_offsets=offsets)
    for number in IDS.values():
        lying = {**sizes, number: sizes[number] + 1}
        assert f"sizes of columns [{number}] differ" in faults(footer, column_sizes=lying)
    assert "sizes of columns [2] differ" in faults(footer, column_sizes={**sizes, 2: 1})


def test_either_may_be_missing() -> None:
    footer = footer_of(3, 2, dictionaries=True)
    assert faults(footer) == faults(footer, split_offsets=None, column_sizes=None) == ""
    assert faults(footer, column_sizes={1: told(footer)["column_sizes"][1]}) == ""
