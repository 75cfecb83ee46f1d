"""Parquet files with variants: as Arrow writes them, but for the marks in the footer."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.parquet_footer import Fields, footer_bytes, read_footer, structs
from nightkeep.encodings.variant_groups import parquet_output
from nightkeep.model.variant_type import VARIANT, shredded_type

MARK = (12, {16: (12, {1: (3, 1)})})
"""As Iceberg's Java writes it."""
PARTS = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.int64())])
SHREDDED = shredded_type(pa.binary(), pa.struct([pa.field("a", PARTS, nullable=False)]))
# A user's own fields of these names are no variant.
OWN = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")])
NULL = {"metadata": b"\1\0\0", "value": b"\0"}
SETTINGS: dict[str, Any] = {"write_page_index": True, "write_page_checksum": True, "store_schema": False}


def column(name: str, kind: pa.DataType, number: int) -> Any:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


COLUMNS = [
    column("id", pa.int64(), 1),
    column("v", VARIANT, 2),
    column("own", OWN, 3),
    column("l", pa.list_(column("element", pa.list_(column("element", VARIANT, 5)), 6)), 4),
    column("m", pa.map_(column("key", pa.string(), 8).with_nullable(False), column("value", VARIANT, 9)), 7),  # type: ignore[arg-type]
    column("s", pa.struct([column("a", pa.int32(), 11), column("b", VARIANT, 12)]), 10),
    column("part", SHREDDED, 13),
]
ROWS = [
    [
        1,
        NULL,
        NULL,
        [[NULL, None], None],
        [("k", NULL), ("n", None)],
        {"a": 1, "b": NULL},
        NULL | {"typed_value": None},
    ],
    [None, None, None, None, None, None, None],
    [2, NULL, None, [], [], {"a": None, "b": None}, {"metadata": b"\1\0\0", "typed_value": {"a": {"typed_value": 5}}}],
]


def written(columns: list[Any], *, marked: bool) -> bytes:
    schema = pa.schema(columns)
    rows = pa.Table.from_pylist([dict(zip([f.name for f in COLUMNS], row, strict=True)) for row in ROWS], schema)
    sink = io.BytesIO()
    open_writer = parquet_output if marked else pq.ParquetWriter
    filters = {"id": {"ndv": 3, "fpp": 0.01}}
    with open_writer(sink, schema, **SETTINGS, bloom_filter_options=filters) as writer:
        writer.add_key_value_metadata({"a": "b"})
        for _ in range(2):
            writer.write_table(rows)
    return sink.getvalue()


def elements(data: bytes) -> tuple[Fields, list[Fields]]:
    footer = read_footer(pa.BufferReader(data))
    return footer, list(structs(footer, 2))


def test_a_footer_gains_the_marks_of_variants_and_nothing_else() -> None:
    data, plain = written(COLUMNS, marked=True), written(COLUMNS, marked=False)
    footer, held = elements(data)
    assert {each[9][1] for each in held if each.get(10) == MARK} == {2, 5, 9, 12, 13}
    for each in held:
        if each.get(10) == MARK:
            del each[10]
    bare = footer_bytes(footer)
    assert plain.endswith(bare)
    assert data[: len(plain) - len(bare)] == plain[: -len(bare)]


def test_engines_and_arrow_read_the_same_rows() -> None:
    data, plain = written(COLUMNS, marked=True), written(COLUMNS, marked=False)
    assert pq.read_table(io.BytesIO(data)) == pq.read_table(io.BytesIO(plain))
    found = pq.ParquetFile(io.BytesIO(data))
    assert found.metadata.row_group(1).column(0).bloom_filter_offset
    assert str(found.schema).count("(Variant(1)) {") == 5


def test_a_file_without_variants_is_as_arrow_writes_it() -> None:
    columns = [COLUMNS[0], COLUMNS[2]]
    assert written(columns, marked=True) == written(columns, marked=False)
