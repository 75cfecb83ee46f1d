"""Statistics and partition values of adds -> the typed columns of a checkpoint: stats_parsed, partitionValues_parsed.

PROTOCOL.md, "Checkpoints". A bound that does not convert is null, which readers take for unknown. A partition value may
not be unknown: readers would prune by it.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.partition import typed
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.model.arrow_types import Array

Values = Sequence[Any]
_FLOAT_BITS: Final = 32
_UNFIT: Final = (pa.ArrowException, TypeError, ValueError, OverflowError, ArithmeticError)


def stats_type(schema: DeltaSchema) -> pa.DataType:
    """The type of stats_parsed: bounds of the leaves that have an order, and null counts of all that are indexed."""
    every = indexed_leaves(schema)
    ordered = [leaf for leaf in every if leaf.ordered]
    bounds = _nested([(leaf.stored, leaf.type) for leaf in ordered])
    counts = _nested([(leaf.stored, pa.int64()) for leaf in every])
    fields: list[tuple[str, pa.DataType]] = [("numRecords", pa.int64())]
    fields += [("minValues", bounds), ("maxValues", bounds)] if ordered else []
    fields += [("nullCount", counts)] if every else []
    fields += [("tightBounds", pa.bool_())] if schema.has_vectors else []
    return pa.struct(fields)


def stats_column(texts: Iterable[str | None], kind: pa.DataType) -> Array:
    """The statistics as columns; null for a file without statistics or with a text that is no JSON object."""
    return _column([None if text is None else _parsed(text) for text in texts], kind)


def partition_type(schema: DeltaSchema) -> pa.DataType:
    fields = map(schema.field, schema.partition_columns)
    return pa.struct([(field.physical, field.type) for field in fields])


def partition_column(schema: DeltaSchema, values: Sequence[Mapping[str, str | None]], *, table: str) -> Array:
    """Typed partition values. Raises RefusedTable for a value whose type alone does not state it."""
    rows = [typed(schema, each) for each in values]
    kinds = [schema.field(name) for name in schema.partition_columns]
    columns = [_exact([row[field.name] for row in rows], field.type, f"{table}: {field.name}") for field in kinds]
    return pa.StructArray.from_arrays(columns, fields=list(cast(pa.StructType, partition_type(schema))))


def _exact(values: Values, kind: pa.DataType, subject: str) -> Array:
    for value in values:
        if isinstance(value, datetime) and (value.tzinfo is None) != (cast(Any, kind).tz is None):
            feature = f"the partition value {value} names no zone, so that each reader applies its own"
            raise RefusedTable(subject, feature, "set delta.checkpoint.writeStatsAsStruct to false")
    try:
        return pa.array(values, kind)
    except _UNFIT as failure:
        feature = f"a partition value does not fit a column of type {kind}: {failure}"
        raise RefusedTable(subject, feature, "set delta.checkpoint.writeStatsAsStruct to false") from failure


def _nested(leaves: Sequence[tuple[tuple[str, ...], pa.DataType]]) -> pa.DataType:
    """A struct of the leaves by their paths, in their order."""
    below: dict[str, list[tuple[tuple[str, ...], pa.DataType]]] = {}
    for (name, *rest), kind in leaves:
        below.setdefault(name, []).append((tuple(rest), kind))
    return pa.struct([(name, each[0][1] if not each[0][0] else _nested(each)) for name, each in below.items()])


def _parsed(text: str) -> object:
    try:
        # A double would lose digits of a decimal.
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None


def _column(values: Values, kind: pa.DataType) -> Array:
    if not isinstance(kind, pa.StructType):
        return _leaf(values, kind)
    objects = [value if type(value) is dict else None for value in values]
    children = [
        _column([None if each is None else each.get(field.name) for each in objects], field.type) for field in kind
    ]
    absent = pa.array([each is None for each in objects], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=absent)


def _leaf(values: Values, kind: pa.DataType) -> Array:
    convert = _converter(kind)
    try:
        return convert(values)
    except _UNFIT:
        return pa.concat_arrays([_alone(value, convert, kind) for value in values])


def _alone(value: object, convert: Callable[[Values], Array], kind: pa.DataType) -> Array:
    try:
        return convert([value])
    except _UNFIT:
        return pa.array([None], kind)


def _converter(kind: pa.DataType) -> Callable[[Values], Array]:
    if pa.types.is_integer(kind):
        return lambda values: pa.array([_of(int, value) for value in values], kind)
    if pa.types.is_string(kind):
        return lambda values: pa.array([_of(str, value) for value in values], kind)
    if pa.types.is_boolean(kind):
        return lambda values: pa.array([_of(bool, value) for value in values], kind)
    if pa.types.is_floating(kind):
        return lambda values: pa.array([_float(value, kind) for value in values], kind)
    if pa.types.is_decimal(kind):
        return lambda values: pa.array([None if value is None else Decimal(value) for value in values], kind)
    return lambda values: _from_text(values, kind)


def _of(wanted: type, value: object) -> object:
    if value is not None and type(value) is not wanted:
        raise ValueError(f"expected {wanted.__name__}, found {type(value).__name__}")
    return value


def _float(value: Any, kind: pa.DataType) -> float | None:
    number = None if value is None else float(value)
    if number is not None and math.isinf(number) and type(value) is not str:
        raise OverflowError(f"{value} is no double")
    if number is not None and kind.bit_width == _FLOAT_BITS:
        # Raises OverflowError for what is too large for a float; Arrow would make an infinity of it.
        struct.pack("<f", number)
    return number


def _from_text(values: Values, kind: pa.DataType) -> Array:
    texts: Array = pa.array([_of(str, value) for value in values], pa.string())
    if pa.types.is_timestamp(kind) and kind.tz is None:
        texts = pc.replace_substring_regex(texts, r"(Z|[+-]00:00)$", "")
    return cast(Array, texts.cast(kind))
