"""Arrow values of one type -> the same values of another: nested fields matched again, types widened, never narrowed.

Type widening follows PROTOCOL.md ("Type Widening"). A field that the file does not have is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa

from nightkeep.encodings.legacy_calendar import LegacyCalendar
from nightkeep.encodings.nested_values import map_of, rebuilt, typed_as, without_nulls
from nightkeep.formats.delta.metadata.schema import ColumnMapping
from nightkeep.kernels.int96 import WIDTH, micros
from nightkeep.kernels.variant_assembly import assembled
from nightkeep.model.arrow_types import (
    Array,
    ArrowField,
    ArrowListType,
    ArrowMapType,
    ChunkedArray,
    ListArray,
    MapArray,
    field_id,
)
from nightkeep.model.variant_type import VARIANT, Shredding, is_variant, shredded_type

Find: TypeAlias = Callable[[list[ArrowField], ArrowField, int], int | None]
"""(fields of the file, the wanted field as the files name it, its index) -> the index of the matching field, or None.
"""

_INT_BITS_IN_DOUBLE: Final = 32


@dataclass(frozen=True, slots=True)
class FileRules:
    """How values of a file are read: how fields are found, by which old calendar, and how variants come.

    With `Shredding.KEPT`, the type of a shredded variant is that of the file, in place of VARIANT.
    """

    find: Find
    calendar: LegacyCalendar | None = None
    shredding: Shredding = Shredding.ASSEMBLED


def conform(column: ChunkedArray, target: pa.DataType, stored: pa.DataType, rules: FileRules) -> ChunkedArray:
    """The column as type `target`. `stored` is the same type with the names and ids that `rules.find` compares.

    Raises ValueError, naming both types, for a type that does not widen to the wanted one, and ArrowInvalid, a
    ValueError too, for a value that does not fit; ValueError for a shredded variant that has no one value.
    """
    if column.type == target and not nested(target) and rules.calendar is None:
        return column
    return chunked([_conform(chunk, target, stored, rules) for chunk in column.chunks], target)


def chunked(chunks: Sequence[Array], kind: Any) -> ChunkedArray:
    """A column of chunks, of their type; of `kind` where there are none."""
    return pa.chunked_array(chunks, chunks[0].type if chunks else kind)


def finder(mapping: ColumnMapping) -> Find:
    """The function that matches fields of a data file under this mode."""
    return by_id if mapping is ColumnMapping.ID else by_name


def by_name(fields: list[ArrowField], target: ArrowField, place: int) -> int | None:
    """The index of the field of this name. Raises if a field differs by case alone.

    An engine reads such a field or nulls, depending on how its session compares names.
    """
    del place
    places = [at for at, field in enumerate(fields) if field.name == target.name]
    if len(places) > 1:
        raise ValueError(f"{len(places)} fields {target.name}")
    if not places:
        near = [field.name for field in fields if field.name.lower() == target.name.lower()]
        if near:
            raise ValueError(f"no field {target.name}, but {', '.join(near)}, which differs by case")
    return places[0] if places else None


def by_id(fields: list[ArrowField], target: ArrowField, place: int) -> int | None:
    """The index of the field with this id."""
    number = field_id(target)
    places = [at for at, field in enumerate(fields) if number is not None and field_id(field) == number]
    if len(places) > 1:
        raise ValueError(f"{len(places)} fields with id {number}")
    return places[0] if places else None


def by_place(fields: list[ArrowField], target: ArrowField, place: int) -> int | None:
    """The field at the same index: we wrote both types. `target` is of a type `without_void`."""
    held = [at for at, field in enumerate(fields) if not pa.types.is_null(field.type)]
    return held[place] if held else place


def without_void(kind: pa.DataType) -> pa.DataType:
    """The type as data files have it: without fields of type void (PROTOCOL.md, "Void Type").

    A struct of void fields only keeps them, because Parquet has no struct without fields.
    """
    if isinstance(kind, pa.StructType):
        held = [field for field in kind if not pa.types.is_null(field.type)]
        return pa.struct([field.with_type(without_void(field.type)) for field in held or kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(without_void(kind.value_type)))
    if isinstance(kind, pa.MapType):
        parts: Any = (kind.key_type, without_void(kind.item_type))
        return cast(pa.DataType, pa.map_(*parts))
    return kind


def nested(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.StructType | pa.ListType | pa.MapType)


def _conform(array: Array, target: pa.DataType, stored: pa.DataType, rules: FileRules) -> Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if is_variant(target) and isinstance(array, pa.StructArray):
        return _variant(array, rules)
    if isinstance(target, pa.StructType) and isinstance(array, pa.StructArray):
        return _struct(array, target, cast(pa.StructType, stored), rules)
    if isinstance(target, pa.MapType) and isinstance(array, pa.MapArray):
        return _map(array, target, cast(ArrowMapType, stored), rules)
    if isinstance(target, pa.ListType) and _is_list(array.type):
        return _list(array, target, cast(ArrowListType, stored), rules)
    return _leaf(array, target, rules.calendar)


def _struct(array: pa.StructArray, target: pa.StructType, stored: pa.StructType, rules: FileRules) -> Array:
    there = list(array.type)
    children: list[Array] = []
    for place, field in enumerate(target):
        at = rules.find(there, stored.field(place), place)
        if at is None:
            children.append(pa.nulls(len(array), field.type))
        else:
            children.append(_conform(array.field(at), field.type, stored.field(place).type, rules))
    return _struct_of(array, children, [typed_as(field, child) for field, child in zip(target, children, strict=True)])


def _struct_of(array: pa.StructArray, children: Sequence[Array], fields: Sequence[ArrowField]) -> pa.StructArray:
    """Other children under the nulls of the array."""
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(list(children), fields=list(fields), mask=mask)


def _variant(array: pa.StructArray, rules: FileRules) -> Array:
    """A variant, found by the names that every file has: its fields have no ids."""
    held = {field.name: array.field(at) for at, field in enumerate(array.type)}
    metadata = _leaf(held.pop("metadata", pa.nulls(len(array), pa.binary())), pa.binary(), None)
    value, typed = held.pop("value", None), held.pop("typed_value", None)
    if held:
        raise ValueError(f"a variant with fields {', '.join(held)}, expected metadata, value and typed_value")
    if value is not None:
        value = _leaf(value, pa.binary(), None)
    if typed is None:
        children = [metadata, pa.nulls(len(array), pa.binary()) if value is None else value]
        if array.null_count:
            # Of a column that the file lacks, the parts are null too.
            held_rows = array.is_valid()
            children = [each if each.filter(held_rows).null_count else without_nulls(each) for each in children]
        return _struct_of(array, children, list(VARIANT))
    if rules.calendar is not None:
        raise ValueError("a shredded variant in a file with dates and times of the old calendar")
    parts = [metadata, *([] if value is None else [value]), typed]
    kind = shredded_type(None if value is None else value.type, typed.type)
    shredded = _struct_of(array, parts, [*kind])
    return shredded if rules.shredding is Shredding.KEPT else assembled(shredded)


def _list(array: Array, target: ArrowListType, stored: ArrowListType, rules: FileRules) -> Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    plain = cast(ListArray, array)
    values = _conform(plain.values, target.value_type, stored.value_type, rules)
    return rebuilt(array, pa.list_(typed_as(target.value_field, values)), values)


def _map(array: MapArray, target: ArrowMapType, stored: ArrowMapType, rules: FileRules) -> Array:
    keys = _conform(array.keys, target.key_type, stored.key_type, rules)
    items = _conform(array.items, target.item_type, stored.item_type, rules)
    fields = [target.key_field, typed_as(target.item_field, items)]
    return rebuilt(array, map_of(*fields), pa.StructArray.from_arrays([keys, items], fields=fields))


def _leaf(array: Array, target: pa.DataType, calendar: LegacyCalendar | None) -> Array:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    is_int96 = pa.types.is_fixed_size_binary(array.type) and array.type.byte_width == WIDTH
    is_int96 = is_int96 and pa.types.is_timestamp(target)
    if is_int96:
        array = micros(array)
    if calendar is not None:
        array = _of_calendar(array, target, calendar, is_int96=is_int96)
    if array.type == target:
        return array
    if not _widens(array.type, target):
        raise ValueError(f"{array.type}, which is not read as {target}")
    return cast(Array, array.cast(target))


def _of_calendar(array: Array, target: pa.DataType, calendar: LegacyCalendar, *, is_int96: bool) -> Array:
    """Spark rebases by the type that it reads: no time without a zone, but a date that is read as one."""
    if pa.types.is_date32(array.type):
        return calendar.days(array)
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target) and target.tz is not None:
        return calendar.micros(array.cast(target), is_int96=is_int96)
    return array


def _widens(held: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast keeps every value that it accepts. Arrow's casts refuse values that do not fit."""
    if pa.types.is_integer(held):
        return _widens_integer(held, target)
    if pa.types.is_decimal(held) and pa.types.is_decimal(target):
        whole = target.precision - target.scale >= held.precision - held.scale
        return bool(whole and target.scale >= held.scale)
    if pa.types.is_timestamp(target):
        return pa.types.is_timestamp(held) or (pa.types.is_date(held) and target.tz is None)
    if pa.types.is_floating(target):
        return pa.types.is_floating(held) and held.bit_width <= target.bit_width
    return (_is_bytes(held) and _is_bytes(target)) or pa.types.is_null(held)


def _widens_integer(held: pa.DataType, target: pa.DataType) -> bool:
    # Some writers store a byte or a short as 32 bits without stating that. Arrow's cast checks the range.
    if pa.types.is_integer(target):
        return held.bit_width <= max(target.bit_width, 32)
    if pa.types.is_decimal(target):
        return True
    return bool(target == pa.float64() and held.bit_width <= _INT_BITS_IN_DOUBLE)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )
