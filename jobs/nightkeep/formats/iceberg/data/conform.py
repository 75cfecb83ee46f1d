"""Arrow values of a data file -> the table's types. Nested fields are matched by id; types are widened, not narrowed.

Spec, "Schema Evolution" and "Column Projection". Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import cast
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from nightkeep.encodings.nested_values import map_of, rebuilt, typed_as, without_nulls
from nightkeep.formats.iceberg.metadata.types import arrow_type
from nightkeep.formats.iceberg.metadata.variants import VariantType
from nightkeep.kernels.int96 import WIDTH, micros, times
from nightkeep.kernels.variant_assembly import assembled
from nightkeep.model.arrow_types import (
    Array,
    ArrowField,
    ArrowListType,
    ArrowMapType,
    Datum,
    ListArray,
    MapArray,
    field_id,
)
from nightkeep.model.variant_type import VARIANT, Shredding, is_variant, shredded_type

Fill = Callable[[NestedField, int], Array]
"""(a field that the file does not have, number of rows) -> its values."""


@dataclass(frozen=True, slots=True)
class ConformRules:
    """How values of a file are read: what a missing field is, and how variants come.

    With `Shredding.KEPT`, the type of a shredded variant is that of the file, in place of VARIANT.
    """

    fill: Fill
    shredding: Shredding = Shredding.ASSEMBLED


def conform(array: Array, held: pa.DataType, target: IcebergType, rules: ConformRules) -> Array:
    """The values as the Arrow type of `target`. `held` is the file's type of the values, with field ids.

    Nulls stay nulls. Raises ValueError naming both types if `held` cannot be promoted to `target`, and ArrowInvalid (a
    ValueError) for a value that does not fit.
    """
    if isinstance(array, pa.ExtensionArray):
        storage: Array = array.storage
        array, held = storage, storage.type
    if isinstance(array, pa.LargeListArray):
        array = array.cast(pa.list_(array.type.value_field))
    if isinstance(target, StructType) and isinstance(array, pa.StructArray):
        return _struct(array, held, target, rules)
    if isinstance(target, ListType) and isinstance(array, pa.ListArray):
        return _list(array, cast(ArrowListType, held), target, rules)
    if isinstance(target, MapType) and isinstance(array, pa.MapArray):
        return _map(array, cast(ArrowMapType, held), target, rules)
    if isinstance(target, VariantType) and isinstance(array, pa.StructArray):
        return _variant(array, rules.shredding)
    return _leaf(array, arrow_type(target))


def places(fields: Iterable[ArrowField]) -> dict[int, int]:
    """The index of each field by field id. Raises ValueError if two fields have the same id."""
    by_id: dict[int, int] = {}
    for place, field in enumerate(fields):
        number = field_id(field)
        if number is not None and by_id.setdefault(number, place) != place:
            raise ValueError(f"two fields with id {number}")
    return by_id


def constant(value: object, kind: pa.DataType, rows: int) -> Array:
    """An array of `rows` times `value`, in metadata's form: dates and times as numbers, uuid and fixed as bytes."""
    if isinstance(value, UUID):
        value = value.bytes
    stored = kind
    if type(value) is int and pa.types.is_temporal(kind):
        stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    one: Datum = pa.scalar(value) if isinstance(value, Decimal) else pa.scalar(value, stored)
    return cast(Array, pa.repeat(one.cast(kind), rows))


def _struct(array: pa.StructArray, held: pa.DataType, target: StructType, rules: ConformRules) -> Array:
    there = [held.field(place) for place in range(held.num_fields)]
    place_of, children = places(there), []
    for field in target.fields:
        at = place_of.get(field.field_id)
        if at is None:
            children.append(rules.fill(field, len(array)))
        else:
            children.append(conform(array.field(at), there[at].type, field.field_type, rules))
    mask = array.is_null() if array.null_count else None
    kind = cast(pa.StructType, arrow_type(target))
    if not children:
        return pa.array([{}] * len(array), kind) if mask is None else pc.if_else(mask, None, pa.scalar({}, kind))
    fields = [typed_as(field, child) for field, child in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _variant(array: pa.StructArray, shredding: Shredding) -> Array:
    """A variant, whose fields have no ids: the encoded names and values, and typed columns."""
    held = {field.name: array.field(place) for place, field in enumerate(array.type)}
    parts = [_leaf(held.pop(field.name), field.type) for field in VARIANT if field.name in held]
    typed = held.pop("typed_value", None)
    if held or array.type.get_field_index("metadata") < 0 or (len(parts) < 2 and typed is None):
        names = ", ".join(field.name for field in array.type)
        raise ValueError(f"fields {names}, expected metadata and value, or typed_value")
    valid = array.is_valid()
    if any(part.filter(valid).null_count for part in parts[: 2 if typed is None else 1] if part.null_count):
        raise ValueError("a variant without metadata or without a value")
    mask = array.is_null() if array.null_count else None
    if typed is None:
        return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=mask)
    kind = shredded_type(parts[1].type if len(parts) > 1 else None, typed.type)
    shredded = pa.StructArray.from_arrays([*parts, typed], fields=list(kind), mask=mask)
    return shredded if shredding is Shredding.KEPT else assembled(shredded)


def _list(array: ListArray, held: ArrowListType, target: ListType, rules: ConformRules) -> Array:
    _require_id(held.value_field, target.element_id, "element")
    values = conform(array.values, held.value_type, target.element_type, rules)
    kind = cast(ArrowListType, arrow_type(target))
    return rebuilt(array, pa.list_(typed_as(kind.value_field, values)), values)


def _map(array: MapArray, held: ArrowMapType, target: MapType, rules: ConformRules) -> Array:
    _require_id(held.key_field, target.key_id, "key")
    _require_id(held.item_field, target.value_id, "value")
    keys = conform(array.keys, held.key_type, target.key_type, rules)
    items = conform(array.items, held.item_type, target.value_type, rules)
    kind = cast(ArrowMapType, arrow_type(target))
    fields = [kind.key_field, typed_as(kind.item_field, items)]
    return rebuilt(array, map_of(*fields), pa.StructArray.from_arrays([keys, items], fields=fields))


def _require_id(held: ArrowField, number: int, what: str) -> None:
    if field_id(held) != number:
        raise ValueError(f"{what}s with id {field_id(held)}, not {number}")


def _leaf(array: Array, target: pa.DataType) -> Array:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_fixed_size_binary(array.type) and array.type.byte_width == WIDTH and pa.types.is_timestamp(target):
        array = _from_int96(array, target)
    if array.type == target:
        return array
    if not _promotes(array.type, target):
        raise ValueError(f"{array.type}, which is not read as {target}")
    if pa.types.is_binary(array.type) and pa.types.is_string(target):
        # Bytes as they are: a text need not be UTF-8.
        return array.view(target)
    return cast(Array, array.cast(target))


def _from_int96(array: Array, target: pa.DataType) -> Array:
    if not isinstance(target, pa.TimestampType) or target.unit != "ns":
        return micros(array)
    instants = times(pa.chunked_array([array]))
    if instants is None:
        raise ValueError("a time beyond the years 1678 to 2261")
    return cast(Array, instants.chunk(0))


def _promotes(held: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast from `held` to `target` never changes a value: Arrow refuses values that do not fit."""
    if pa.types.is_integer(held):
        # Migrated files may have 8-bit and 16-bit integers; an unsigned 32-bit integer fits into a long.
        return bool(pa.types.is_integer(target) and held.bit_width <= target.bit_width)
    if pa.types.is_decimal(held) and pa.types.is_decimal(target):
        return bool(target.scale == held.scale and target.precision >= held.precision)
    if pa.types.is_timestamp(target):
        return pa.types.is_timestamp(held) or (pa.types.is_date(held) and target.tz is None)
    if pa.types.is_time(target):
        return pa.types.is_time(held)
    if pa.types.is_floating(target):
        return pa.types.is_floating(held) and held.bit_width <= target.bit_width
    return (_is_bytes(held) and _is_bytes(target)) or pa.types.is_null(held)


def _is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes. Includes large and view types, as files of pyiceberg and Polars request them."""
    tests = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def stored(array: Array, kind: pa.DataType, name: str) -> Array:
    """Values of the table's type as `kind`, the file's type: the same fields in order, with ids and nullability.

    A shredded variant keeps its typed columns. Raises ValueError naming the column, by its full `name`, for a null that
    the type does not allow.
    """
    if isinstance(kind, pa.StructType) and isinstance(array, pa.StructArray):
        return _stored_struct(array, array.type if is_variant(kind) else kind, name)
    if isinstance(kind, pa.ListType) and isinstance(array, pa.ListArray):
        _require_values(array.flatten(), kind.value_field, f"{name}.element")
        values = stored(array.values, kind.value_type, f"{name}.element")
        return rebuilt(array, pa.list_(typed_as(kind.value_field, values)), values)
    if isinstance(kind, pa.MapType) and isinstance(array, pa.MapArray):
        return _stored_map(array, kind, name)
    if pa.types.is_time(array.type) and pa.types.is_integer(kind):
        # A time of day in an ORC file.
        return cast(Array, array.cast(kind))
    if isinstance(kind, pa.BaseExtensionType) and array.type != kind:
        return cast(Array, pa.ExtensionArray.from_storage(kind, _leaf(array, kind.storage_type)))
    return _leaf(array, kind)


def _stored_struct(array: pa.StructArray, kind: pa.StructType, name: str) -> Array:
    valid = array.is_valid()
    children = []
    for place, field in enumerate(kind):
        child, called = array.field(place), f"{name}.{field.name}"
        if not field.nullable and child.null_count:
            _require_values(child.filter(valid), field, called)
            child = without_nulls(child)
        children.append(stored(child, field.type, called))
    mask = array.is_null() if array.null_count else None
    fields = [typed_as(field, child) for field, child in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _stored_map(array: MapArray, kind: ArrowMapType, name: str) -> Array:
    _require_values(array.items, kind.item_field, f"{name}.value")
    keys = stored(array.keys, kind.key_type, f"{name}.key")
    items = stored(array.items, kind.item_type, f"{name}.value")
    fields = [kind.key_field, typed_as(kind.item_field, items)]
    return rebuilt(array, map_of(*fields), pa.StructArray.from_arrays([keys, items], fields=fields))


def _require_values(array: Array, field: ArrowField, name: str) -> None:
    if not field.nullable and array.null_count:
        raise ValueError(f"{array.null_count} nulls of the required column {name}")
