"""Arrow's values of a type that is known only when they are read. Nothing of Arrow is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Array: TypeAlias = "pa.Array[Any]"
ChunkedArray: TypeAlias = "pa.ChunkedArray[Any]"
Column: TypeAlias = "Array | ChunkedArray"
Scalar: TypeAlias = "pa.Scalar[Any]"
ListArray: TypeAlias = "pa.ListArray[Any]"
MapArray: TypeAlias = "pa.MapArray[Any, Any]"
DictionaryArray: TypeAlias = "pa.DictionaryArray[Any, Any]"
ArrowListType: TypeAlias = "pa.ListType[pa.DataType]"
ArrowMapType: TypeAlias = "pa.MapType[pa.DataType, pa.DataType]"
ArrowField: TypeAlias = "pa.Field[Any]"
Datum: TypeAlias = Any
"""A column or a scalar, as Arrow's functions take and return them. The stubs know few of the combinations."""

FIELD_ID: Final = b"PARQUET:field_id"
"""The key of an Arrow field's metadata that Arrow reads from Parquet, and writes to it, as the field id."""


def field_id(field: ArrowField) -> int | None:
    """The Parquet field id of a field; None if it has none."""
    number = (field.metadata or {}).get(FIELD_ID)
    return None if number is None else int(number)


def has_type(kind: pa.DataType, wanted: Callable[[Any], bool]) -> bool:
    """Whether `wanted` returns True for a type, or for one within it, at any depth."""
    return wanted(kind) or any(has_type(kind.field(place).type, wanted) for place in range(kind.num_fields))
