"""An add's text of statistics and texts of partition values -> whether a checkpoint's typed columns say the same.

Each value is converted here one by one with Python's own types; the writer converts whole columns with Arrow.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from typing import Any, Final

import pyarrow as pa

from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.delta.metadata.partition import typed
from nightkeep.formats.delta.metadata.schema import DeltaSchema

_SHORT: Final = 32
Fault = tuple[str, str]
"""What was expected, and what was found."""


Stats = list[tuple[str, str]] | None
"""Each value that is known, by its path. None without statistics."""


def stats_of_text(schema: DeltaSchema, text: str | None) -> Stats:
    """The values that columns have to hold. A bound that does not convert has to be null there."""
    value = _object(text)
    if value is None:
        return None
    return _spelled((path, _as(_at(value, path), kind)) for path, kind in _columns(schema))


def stats_of_columns(schema: DeltaSchema, found: Mapping[str, Any] | None) -> Stats:
    """The values that columns hold."""
    if found is None:
        return None
    return _spelled((path, _at(found, path)) for path, _ in _columns(schema))


def _columns(schema: DeltaSchema) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    yield ("numRecords",), pa.int64()
    for leaf in indexed_leaves(schema):
        yield ("nullCount", *leaf.stored), pa.int64()
        if leaf.ordered:
            yield from (((name, *leaf.stored), leaf.type) for name in ("minValues", "maxValues"))
    if schema.has_vectors:
        yield ("tightBounds",), pa.bool_()


def _spelled(values: Iterable[tuple[tuple[str, ...], Any]]) -> list[tuple[str, str]]:
    return [(".".join(path), repr(_in_utc(value))) for path, value in values if value is not None]


def partition_fault(
    schema: DeltaSchema, values: Mapping[str, str | None], found: Mapping[str, Any] | None
) -> Fault | None:
    wanted = {schema.field(name).physical: value for name, value in typed(schema, values).items()}
    stored = {name: _in_utc(value) for name, value in (found or {}).items()}
    if wanted.keys() == stored.keys() and all(_same(wanted[name], stored[name]) for name in wanted):
        return None
    return f"partition values {wanted}", f"{found}"


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = None if text is None else json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _as(value: Any, kind: pa.DataType) -> Any:
    """The value as the column has to hold it; None where it does not convert."""
    if value is None:
        return None
    try:
        return _converted(value, kind)
    except (ValueError, TypeError, ArithmeticError, OverflowError, struct.error):
        return None


def _converted(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return value if type(value) is bool else None
    if pa.types.is_integer(kind):
        bits = kind.bit_width - 1
        return value if type(value) is int and -(1 << bits) <= value < 1 << bits else None
    if pa.types.is_floating(kind):
        return _float(value, kind.bit_width)
    if pa.types.is_decimal(kind):
        return _decimal(Decimal(value), kind.precision, kind.scale)
    if type(value) is not str:
        return None
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return _time(value, zoned=kind.tz is not None)
    return value


def _float(value: Any, bits: int) -> float | None:
    number = float(value)
    if math.isinf(number) and type(value) is not str:
        return None
    short: tuple[float] = struct.unpack("<f", struct.pack("<f", number)) if bits == _SHORT else (number,)
    return short[0]


def _decimal(exact: Decimal, precision: int, scale: int) -> Decimal | None:
    with localcontext(prec=100):
        fits = exact.quantize(Decimal(1).scaleb(-scale))
    if fits != exact or len(fits.as_tuple().digits) > precision:
        return None
    return fits if fits else abs(fits)


def _time(text: str, *, zoned: bool) -> datetime | None:
    moment = datetime.fromisoformat(text)
    if zoned:
        return None if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.replace(tzinfo=None) if moment.utcoffset() in (None, UTC.utcoffset(None)) else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, datetime) and isinstance(other, datetime) and one.tzinfo is not None:
        return other.tzinfo is not None and one == other
    return type(one) is type(other) and one == other
