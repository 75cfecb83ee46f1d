"""Variants in data files of any writer: found by the ids of their groups, by names within; what is odd is refused."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.iceberg.content_made import file_of, schema_of

from nightkeep.errors import RefusedRows
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.metadata.types import arrow_schema, parquet_field
from nightkeep.model.variant_type import VARIANT
from nightkeep.storage import LocalStorage

LIST = {"type": "list", "element-id": 9, "element": "variant", "element-required": False}
SCHEMA = schema_of([("id", "long"), ("v", "variant"), ("l", LIST)])
ONE, TWO = ({"metadata": b"\1\0\0", "value": bytes([12, number])} for number in (1, 2))


def read(tmp_path: Path, column: Any, kind: pa.DataType = VARIANT) -> list[Any]:
    """The column `v` of a file that has it as `kind`."""
    array = column if isinstance(column, pa.Array) else pa.array(column, kind)
    field = pa.field("any name", array.type, metadata={"PARQUET:field_id": "2"})
    table = pa.table({"any name": array}, pa.schema([field]))
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
    path = str(tmp_path / "a.parquet")
    file = file_of(path[1:], rows=len(column))
    held = IcebergFileReader(LocalStorage("/"), SCHEMA, file).read(["v", "l"])
    assert held.schema.equals(arrow_schema(SCHEMA.current).remove(0), check_metadata=True)
    assert held.column("l").null_count == len(column)
    return list(held.column("v").to_pylist())


SHREDDED = pa.struct([*VARIANT, pa.field("typed_value", pa.int64())])


def struct(**parts: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(name, kind) for name, kind in parts.items()])


@pytest.mark.parametrize(
    "kind",
    [
        VARIANT,
        struct(value=pa.binary(), metadata=pa.binary()),
        struct(metadata=pa.large_binary(), value=pa.large_binary()),
        struct(value=pa.binary(3), metadata=pa.binary(3)),
    ],
)
def test_parts_are_found_by_their_names(tmp_path: Path, kind: pa.DataType) -> None:
    rows = [{"metadata": b"\1\0\0", "value": bytes([12, number, 0])} for number in (1, 2)]
    assert read(tmp_path, [rows[0], None, rows[1]], kind) == [rows[0], None, rows[1]]


def test_typed_values_are_put_together_with_the_others(tmp_path: Path) -> None:
    kind = struct(metadata=pa.binary(), value=pa.binary(), typed_value=pa.int8())
    rows = [ONE, None, {"metadata": b"\1\0\0", "typed_value": 2}]
    assert read(tmp_path, rows, kind) == [ONE, None, TWO]
    alone = struct(metadata=pa.binary(), typed_value=pa.int8())
    assert read(tmp_path, rows[1:], alone) == [None, TWO]


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (
            [{"value": b"\0"}],
            struct(value=pa.binary(), typed_value=pa.int64()),
            "fields value, typed_value, expected metadata",
        ),
        ([ONE | {"typed_value": 5}], SHREDDED, "a variant with a value beside one of type int64"),
        ([ONE], struct(metadata=pa.binary()), "fields metadata, expected metadata and value"),
        ([ONE], struct(metadata=pa.binary(), value=pa.binary(), other=pa.int8()), "fields metadata, value, other"),
        (
            [ONE, {"metadata": b"\1\0\0", "value": None}],
            struct(metadata=pa.binary(), value=pa.binary()),
            "without a value",
        ),
        ([{"value": b"\0"}, None], struct(metadata=pa.binary(), value=pa.binary()), "without metadata"),
        ([b"\0"], pa.binary(), "binary, which is not read as"),
        (
            [{"metadata": 1, "value": 2}],
            struct(metadata=pa.int64(), value=pa.int64()),
            "int64, which is not read as binary",
        ),
    ],
)
def test_what_is_no_plain_variant_is_refused(tmp_path: Path, column: Any, kind: pa.DataType, reason: str) -> None:
    with pytest.raises(RefusedRows, match=f"column v .*{reason}"):
        read(tmp_path, column, kind)


def test_a_variant_with_typed_columns_of_uuids_is_refused(tmp_path: Path) -> None:
    rows = [{"metadata": b"\1\0\0", "typed_value": {"a": {"typed_value": bytes(16)}}}]
    kinds = [
        struct(metadata=pa.binary(), value=pa.binary(), typed_value=struct(a=struct(typed_value=kind)))
        for kind in (pa.binary(16), pa.uuid())
    ]
    with pytest.raises(RefusedRows, match=r"column v .*a variant shredded into UUIDs, which Spark does not read"):
        read(tmp_path, pa.array(rows, kinds[0]).cast(kinds[1]))


def test_columns_of_files_have_ids_and_their_parts_have_none() -> None:
    field = parquet_field(SCHEMA.current.find_field("l"))
    assert field.type.value_field.metadata == {b"PARQUET:field_id": b"9"}
    assert field.type.value_type.equals(VARIANT, check_metadata=True)
