"""Partition values in manifests -> typed values for filters, the unit's key, and an identity to compare partitions.

Iceberg table spec, "Partitioning" and "Partition Transforms".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

import numpy as np
from pyiceberg.partitioning import PartitionField
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata.manifest_schema import partition_types
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.model import UnitKey

Values = tuple[object, ...]
"""A partition in the form of manifests: the values of the spec's fields in their order."""


def unit_key(schema: IcebergSchema, spec_id: int, values: Values) -> UnitKey:
    """The unique key of a partition: `day=2026-11-01/id_bucket=3`, with `spec-2/` before it for specs other than 0.

    Fields with the transform void are left out. Raises as `typed`.
    """
    own = _own(schema, spec_id, values)
    text = "/".join(f"{_escaped(name)}={_key_value(value)}" for name, value in own.items())
    if spec_id == 0:
        return UnitKey(text)
    return UnitKey(f"spec-{spec_id}/{text}" if text else f"spec-{spec_id}")


@dataclass(frozen=True, slots=True)
class FarDay:
    """A date or a time before year 1 or after year 9999, which Python's types cannot hold. `text` is its ISO form."""

    text: str


def far_value(schema: IcebergSchema, spec_id: int, values: Values) -> RefusedTable | None:
    """Why no operation changes the partition: one of its values is a date that conditions cannot compare."""
    for name, value in _own(schema, spec_id, values).items():
        if isinstance(value, FarDay):
            feature = f"partition field {name} with a value that is no date of the years 1 to 9999, {value.text}"
            return RefusedTable(schema.table, feature, "correct the rows of that partition; others are maintained")
    return None


def typed(schema: IcebergSchema, spec_id: int, values: Values) -> Mapping[str, object]:
    """Values by the names of the partition fields of all specs; None for fields that this spec does not have.

    identity: str, int, bool, Decimal, float, bytes, date, time, datetime (UTC if the column has a zone); uuids and
    timestamps of nanoseconds are strings such as `2026-11-01T06:07:08.000000009`. truncate: as its column. bucket: int.
    day: date. year, month, hour: strings such as `2026`, `2026-11` and `2026-11-01-06`, which sort by time. Raises
    CorruptMetadata for values that are not of their field's type. A date beyond year 9999 is None: see `far_value`.
    """
    every = (each for spec in schema.specs.values() for each in spec.fields if not _is_void(each))
    own = _own(schema, spec_id, values).items()
    near = {name: None if isinstance(value, FarDay) else value for name, value in own}
    return {**dict.fromkeys((each.name for each in every), None), **near}


def identity(spec_id: int, values: Values) -> Hashable:
    """A value that is equal for equal partitions only. As in Java, -0.0 and 0.0 differ."""
    if any(isinstance(value, float) for value in values):
        return (spec_id, tuple(_bits(value) if isinstance(value, float) else value for value in values))
    return (spec_id, values)


def _bits(value: float) -> bytes:
    # All NaN are one value, whatever their payload.
    return b"NaN" if value != value else struct.pack(">d", value)


def _own(schema: IcebergSchema, spec_id: int, values: Values) -> dict[str, object]:
    fields = schema.spec(spec_id).fields
    if len(values) != len(fields):
        subject = f"{schema.table}: a partition of spec {spec_id}"
        raise CorruptMetadata(subject, f"{len(fields)} values", str(len(values)))
    kinds = zip(fields, partition_types(schema, spec_id), values, strict=True)
    return {
        field.name: None if value is None else _value(schema, field, kind, value)
        for field, kind, value in kinds
        if not _is_void(field)
    }


def _is_void(field: PartitionField) -> bool:
    return str(field.transform) == "void"


def _value(schema: IcebergSchema, field: PartitionField, kind: IcebergType, value: object) -> object:
    subject = f"{schema.table}: partition field {field.name}"
    convert = _OF_TRANSFORM.get(str(field.transform)) or _OF_TYPE.get(type(kind))
    if convert is None:
        raise RefusedTable(
            schema.table, f"partition values of type {kind} are not handled", "use another partition spec"
        )
    try:
        return convert(value)
    except OverflowError:
        return FarDay(_far_text(field, kind, _whole(value)))
    except (TypeError, ValueError) as failure:
        raise CorruptMetadata(subject, f"a value of type {kind}", repr(value)) from failure


def _far_text(field: PartitionField, kind: IcebergType, value: int) -> str:
    transform = str(field.transform)
    unit = "h" if transform == "hour" else "D" if transform == "day" or isinstance(kind, DateType) else "us"
    return str(np.asarray(value, np.int64).astype(f"datetime64[{unit}]"))


def _exactly(*kinds: type) -> Callable[[object], object]:
    def check(value: object) -> object:
        # isinstance would accept a bool as an int.
        if type(value) not in kinds:
            raise TypeError(type(value).__name__)
        return value

    return check


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(type(value).__name__)
    return value


def _day(value: object) -> date:
    return _EPOCH_DAY + timedelta(days=_whole(value))


def _time(value: object) -> time:
    micros = _whole(value)
    if not 0 <= micros < 86_400_000_000:
        raise ValueError(micros)
    return (_EPOCH + timedelta(microseconds=micros)).time()


def _moment(value: object) -> datetime:
    return _EPOCH + timedelta(microseconds=_whole(value))


def _instant(value: object) -> datetime:
    return _moment(value).replace(tzinfo=UTC)


def _nanos(value: object) -> str:
    seconds, nanos = divmod(_whole(value), 1_000_000_000)
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()}.{nanos:09d}"


def _year(value: object) -> str:
    return f"{1970 + _whole(value):04d}"


def _month(value: object) -> str:
    years, months = divmod(_whole(value), 12)
    return f"{_year(years)}-{months + 1:02d}"


def _hour(value: object) -> str:
    days, hours = divmod(_whole(value), 24)
    return f"{_day(days).isoformat()}-{hours:02d}"


def _uuid(value: object) -> str:
    return str(value if isinstance(value, UUID) else UUID(bytes=_bytes(value)))


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(type(value).__name__)
    return bytes(value)


def _key_value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, FarDay):
        return value.text
    # Escaped: the string "null" must differ from the value null.
    return "%6Eull" if value == "null" else _escaped(str(value))


def _escaped(text: str) -> str:
    """Text without the separators of a key and without unprintable characters: keys are printed in reports."""
    return "".join(_hex(char) if char in "/=%" or not char.isprintable() else char for char in text)


def _hex(char: str) -> str:
    # By byte: hexadecimal code points have no fixed length, so one could be read as the start of another.
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1)
_OF_TRANSFORM: Final[Mapping[str, Callable[[object], object]]] = {
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
}
_OF_TYPE: Final[Mapping[type[IcebergType], Callable[[object], object]]] = {
    BooleanType: _exactly(bool),
    IntegerType: _whole,
    LongType: _whole,
    FloatType: _exactly(float),
    DoubleType: _exactly(float),
    DecimalType: _exactly(Decimal),
    DateType: _day,
    TimeType: _time,
    TimestampType: _moment,
    TimestamptzType: _instant,
    TimestampNanoType: _nanos,
    TimestamptzNanoType: _nanos,
    StringType: _exactly(str),
    UUIDType: _uuid,
    BinaryType: _bytes,
    FixedType: _bytes,
    # The source column is in no schema any more.
    UnknownType: lambda value: value if isinstance(value, bytes | str) else str(value),
}
