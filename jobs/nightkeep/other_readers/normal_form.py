"""Arrow batches of any reader -> the same rows in the types of the table's schema, or why they have no such form.

Readers choose views, dictionaries, large offsets, units of time and extension types as they like. What would lose a
digit, or makes another value of it, is refused by the column's name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from nightkeep.model.arrow_types import Array


class NoNormalForm(Exception):
    """Columns or types that cannot be compared with the table's."""


def normal_form(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of `schema`, in their order. Raises NoNormalForm."""
    names = batch.schema.names
    if len(set(names)) != len(names) or set(names) != set(schema.names):
        raise NoNormalForm(f"columns: expected {', '.join(schema.names)}, found {', '.join(names)}")
    columns = [_formed(batch.column(field.name), field) for field in schema]
    plain = pa.schema([pa.field(field.name, column.type) for field, column in zip(schema, columns, strict=True)])
    return pa.RecordBatch.from_arrays(columns, schema=plain)


def _formed(column: Array, field: pa.Field[Any]) -> Array:
    found, wanted = _stored(column.type), _stored(field.type)
    if not _akin(found, wanted):
        raise NoNormalForm(f"column {field.name}: expected {wanted}, found {found}")
    try:
        column = _unwrapped(column, found)
        column = column if found == wanted else column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        # Arrow's message quotes the value.
        raise NoNormalForm(f"column {field.name}: {found} holds what is no {wanted}") from failure
    # Readers keep the bits of a value that is not a number, or do not.
    if not kinds.is_floating(wanted):
        return column
    # Not made when the module is imported: Arrow imports pandas for its first value, which takes half a second.
    not_a_number = pa.scalar(math.nan).cast(wanted)
    filled: Array = pc.if_else(pc.is_nan(column), not_a_number, column)
    return filled


def _unwrapped(column: Array, stored: pa.DataType) -> Array:
    if isinstance(column, pa.ExtensionArray):
        return _unwrapped(column.storage, stored)
    return column if column.type == stored else column.cast(stored)


def _stored(kind: Any) -> Any:
    """The type without extensions, dictionaries and views, which Arrow casts from but not always to."""
    if isinstance(kind, pa.BaseExtensionType):
        return _stored(kind.storage_type)
    if kinds.is_dictionary(kind):
        return _stored(kind.value_type)
    if kinds.is_struct(kind):
        return pa.struct([pa.field(each.name, _stored(each.type)) for each in kind])
    if kinds.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    if _is_list(kind):
        return pa.list_(pa.field("item", _stored(kind.value_type)))
    if kinds.is_string_view(kind):
        return pa.string()
    return pa.binary() if kinds.is_binary_view(kind) else kind


def _akin(found: Any, wanted: Any) -> bool:
    """Whether values of both types can be the same ones."""
    if kinds.is_struct(wanted):
        return bool(kinds.is_struct(found) and _names(found) == _names(wanted) and _all_akin(found, wanted))
    if kinds.is_map(wanted):
        items = kinds.is_map(found) and _akin(found.item_type, wanted.item_type)
        return bool(items and _akin(found.key_type, wanted.key_type))
    if _is_list(wanted):
        return bool(_is_list(found) and _akin(found.value_type, wanted.value_type))
    if kinds.is_timestamp(wanted):
        return kinds.is_timestamp(found) and (found.tz is None) == (wanted.tz is None) and _as_fine(found, wanted)
    if kinds.is_floating(wanted):
        return bool(found == wanted)
    family = next((family for family in _FAMILIES if any(test(wanted) for test in family)), ())
    return any(test(found) for test in family)


_FAMILIES: Final = (
    (kinds.is_string, kinds.is_large_string),
    (kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary),
    (kinds.is_integer,),
    (kinds.is_boolean, kinds.is_int8),
    (kinds.is_decimal,),
    (kinds.is_date,),
    (kinds.is_time,),
    (kinds.is_null,),
)


def _is_list(kind: pa.DataType) -> bool:
    """Not list views: Arrow 26 casts those with nulls to arrays that are not valid."""
    return any(test(kind) for test in (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list))


def _as_fine(found: pa.TimestampType, wanted: pa.TimestampType) -> bool:
    return _UNITS.index(found.unit) >= _UNITS.index(wanted.unit)


_UNITS: Final = ("s", "ms", "us", "ns")


def _names(kind: pa.StructType) -> Sequence[str]:
    return [each.name for each in kind]


def _all_akin(found: pa.StructType, wanted: pa.StructType) -> bool:
    return all(_akin(found.field(name).type, wanted.field(name).type) for name in _names(wanted))
