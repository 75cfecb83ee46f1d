"""An Arrow scalar -> one value of one column, independent of engines. Nothing is ever rounded.

Values are: bool for BOOLEAN; int for the integer types, DATE (days since epoch) and TIME (milliseconds of the day);
float; decimal.Decimal of the type's scale; str; bytes; and for both timestamps an unbounded int of NANOSECONDS since
1970-01-01T00:00:00, which holds Java's whole range and precision. None is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, TypeAlias

import pyarrow as pa

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.model.arrow_types import Datum, Scalar

Present: TypeAlias = bool | int | float | Decimal | str | bytes
Value: TypeAlias = Present | None

NANOS_PER_MILLI: Final = 1_000_000
_EPOCH: Final = date(1970, 1, 1)


def canonical(scalar: Scalar, kind: PaimonType) -> Value:
    """An Arrow scalar as a value of this module. Times of any unit are rescaled exactly.

    Raises ValueError if the scalar is finer than TIME's milliseconds.
    """
    if not scalar.is_valid:
        return None
    if pa.types.is_date32(scalar.type):
        return _ticks(scalar)
    if pa.types.is_timestamp(scalar.type):
        return _ticks(scalar) * _UNIT_NANOS[scalar.type.unit]
    if pa.types.is_time(scalar.type):
        millis, rest = divmod(_ticks(scalar) * _UNIT_NANOS[scalar.type.unit], NANOS_PER_MILLI)
        if rest:
            raise ValueError(f"{kind}: expected whole milliseconds, found {scalar!r}")
        return millis
    value: Value = scalar.as_py()
    return value


def python_value(value: Value, kind: PaimonType) -> object:
    """A canonical value as the Python object that a filter compares with. Dates and times become such objects."""
    if value is None or not isinstance(value, int):
        return value
    if kind.root is TypeRoot.DATE:
        return _EPOCH + timedelta(days=value)
    if kind.root is TypeRoot.TIME:
        return (datetime.min + timedelta(milliseconds=value)).time()
    if kind.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        return datetime.min.replace(year=1970) + timedelta(microseconds=value // 1000)
    return value


def _ticks(scalar: Datum) -> int:
    """The stored integer of a date or time scalar; as_py() would round nanoseconds."""
    return int(scalar.value)


_UNIT_NANOS: Final[Mapping[str, int]] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
