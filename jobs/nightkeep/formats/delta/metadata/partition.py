"""Partition values in the log, texts by physical name -> typed values, a unit's name, a folder's name."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Final
from urllib.parse import quote

import pyarrow as pa

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema

Stored = Mapping[str, str | None]
DEFAULT: Final = "__HIVE_DEFAULT_PARTITION__"


def stored(schema: DeltaSchema, values: Stored, *, subject: str) -> Stored:
    """The value of every partition column, in the table's order. Missing and empty values are None.

    Raises CorruptMetadata, which names `subject`, for a value of a column that is not a partition column.
    """
    names = [schema.field(name).physical for name in schema.partition_columns]
    if not values.keys() <= set(names):
        others = ", ".join(sorted(values.keys() - set(names)))
        raise CorruptMetadata(subject, f"values of the partition columns {', '.join(names) or '(none)'}", others)
    return {name: values.get(name) or None for name in names}


def typed(schema: DeltaSchema, values: Stored) -> Mapping[str, object]:
    """Values by logical name (PROTOCOL.md, "Partition Value Serialization").

    They are str, int, bool, Decimal, float, bytes, date, datetime or None. A datetime is in UTC if its text names a
    zone. It is naive for timestamp_ntz, and for a timestamp whose text names no zone: each reader applies its own zone
    there, so such a text may mean another instant than the same text with a zone. Raises CorruptMetadata.
    """
    typed_values: dict[str, object] = {}
    for name in schema.partition_columns:
        field = schema.field(name)
        text = values.get(field.physical)
        typed_values[name] = _value(field, text) if text else None
    return typed_values


def key_text(schema: DeltaSchema, values: Mapping[str, object]) -> str:
    """The unit's name, such as `day=2026-11-01/region=eu`; "" without partition columns.

    Different typed values have different texts. Null is `null`.
    """
    return "/".join(f"{_escaped(name)}={_key_value(values[name])}" for name in schema.partition_columns)


def folder(schema: DeltaSchema, values: Stored) -> str:
    """The folder of a partition's files, as Hive and delta-spark name it; "" for the table's own folder.

    Tables with column mapping have no partition folders, because folders would show names that the table may drop.
    """
    if schema.mapping is not ColumnMapping.NONE:
        return ""
    parts = ((field.physical, values.get(field.physical)) for field in map(schema.field, schema.partition_columns))
    return "/".join(f"{_hive(name)}={_hive(value) if value else DEFAULT}" for name, value in parts)


def folder_names(column: str) -> tuple[str, ...]:
    """The spellings of a column in a folder's name: Hive's, delta-rs's, and the unescaped name."""
    return tuple(dict.fromkeys((_hive(column), quote(column, safe=""), column)))


def _value(field: DeltaField, text: str) -> object:
    parse = _parser(field.type)
    try:
        value = parse(text)
    except (ValueError, InvalidOperation, OverflowError) as failure:
        raise CorruptMetadata(
            f"partition column {field.name}", f"a value of type {field.type}", repr(text)
        ) from failure
    return value


def _parser(kind: pa.DataType) -> Callable[[str], object]:
    if pa.types.is_integer(kind):
        return lambda text: _integer(text, kind.bit_width)
    if pa.types.is_decimal(kind):
        return lambda text: _decimal(text, kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _instant if kind.tz else _local
    return _PARSERS[kind]


def _integer(text: str, bits: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise ValueError(text)
    return int(text)


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    value = Decimal(text)
    if not value.is_finite() or abs(value.adjusted()) > 2 * precision:
        raise ValueError(text)
    sized = value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    if sized != value or len(sized.as_tuple().digits) > precision:
        raise ValueError(text)
    return sized


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _float(text: str) -> float:
    # Java's spellings. Python's own, such as inf, are not accepted.
    if not re.fullmatch(
        r"NaN|[+-]?(?:Infinity|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)", text
    ):
        raise ValueError(text)
    return float(text)


def _single(text: str) -> float:
    """The value rounded to 32 bits."""
    (value,) = struct.unpack("<f", struct.pack("<f", _float(text)))
    return float(value)


def _nothing(text: str) -> object:
    raise ValueError(text)


def _date(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}", text):
        raise ValueError(text)
    year, month, day = map(int, text.split("-"))
    return date(year, month, day)


def _local(text: str) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None or match[8]:
        raise ValueError(text)
    return _moment(match)


def _instant(text: str) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(text)
    zone = match[8]
    if zone is None:
        return _moment(match)
    sign, hours, minutes = (1, 0, 0) if zone == "Z" else (1 if zone[0] == "+" else -1, int(zone[1:3]), int(zone[4:6]))
    return (_moment(match) - sign * timedelta(hours=hours, minutes=minutes)).replace(tzinfo=UTC)


def _moment(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(match[i] or 0) for i in range(1, 7))
    return datetime(year, month, day, hour, minute, second, int((match[7] or "").ljust(6, "0")))


def _key_value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return f"{text}Z" if value.tzinfo else text
    # The text "null" must differ from the value null.
    return "%6Eull" if value == "null" else _escaped(str(value))


def _escaped(text: str) -> str:
    """The text escaped: no separators of columns, and printable, because it is a line of reports."""
    return "".join(f"%{ord(char):02X}" if char in "/=%" or not char.isprintable() else char for char in text)


def _hive(text: str) -> str:
    """Spark's ExternalCatalogUtils.escapePathName."""
    return "".join(f"%{ord(char):02X}" if char in _HIVE_ESCAPES else char for char in text)


_WIDE: Final = Context(prec=80)
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})0*)?)?)?(Z|[+-]\d{2}:\d{2})?",
    re.ASCII,
)
_HIVE_ESCAPES: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(1, 32)))
_PARSERS: Final[Mapping[pa.DataType, Callable[[str], object]]] = {
    pa.string(): str,
    pa.binary(): lambda text: text.encode(),
    pa.bool_(): _boolean,
    pa.float32(): _single,
    pa.float64(): _float,
    pa.date32(): _date,
    pa.null(): _nothing,
}
