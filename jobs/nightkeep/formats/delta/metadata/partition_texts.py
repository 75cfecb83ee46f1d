"""The text of a partition value in the log -> the value that delta-spark reads there.

delta-spark casts the text as Spark SQL does without ANSI mode (TahoeFileIndex, Cast): white space around it goes, 5.0
is an integer, `no` a boolean, and a text that is no value of the type is null. An empty text is an empty string or
binary, and null for all other types, whatever PROTOCOL.md states. Tests ask delta-spark for each type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from nightkeep.encodings.rebase import SHORT_ZONES
from nightkeep.errors import RefusedTable
from nightkeep.model.far_time import FarTime


def read_text(kind: pa.DataType, text: str) -> object:
    """The value of a text in a partition column of this type, None for null.

    It is a str, int, bool, Decimal, float, bytes, date, datetime or FarTime. A datetime is in UTC if the text names a
    zone, and else naive. Raises RefusedTable for a time without a date, which is one of today, and ValueError for a
    text that is no Unicode.
    """
    if pa.types.is_string(kind):
        return text
    if pa.types.is_binary(kind):
        return text.encode()
    trimmed = text.strip(_SPACE)
    if pa.types.is_integer(kind):
        return _integer(trimmed, kind.bit_width)
    if pa.types.is_decimal(kind):
        return _decimal(trimmed, kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _time(trimmed, zoned=bool(kind.tz))
    return _PARSERS[kind](trimmed)


def _integer(text: str, bits: int) -> int | None:
    """The part before a point, as UTF8String.toLong reads it."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    value = int(f"{match[1]}{match[2] or 0}")
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _decimal(text: str, precision: int, scale: int) -> Decimal | None:
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        sized = Decimal(text).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_WIDE)
    except InvalidOperation:
        return None
    # A decimal has no negative zero in Java.
    return abs(sized) if not sized else sized if len(sized.as_tuple().digits) <= precision else None


def _boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


def _double(text: str) -> float | None:
    """As Java's Double.parseDouble, and Spark's further names of what is no finite number."""
    if _DOUBLE.fullmatch(text):
        return float(text.rstrip("dDfF"))
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text.rstrip("dDfF"))
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    if text in ("+NaN", "-NaN"):
        return math.nan
    return _NUMBERS.get(text.lower())


def _single(text: str) -> float | None:
    value = _double(text)
    with np.errstate(over="ignore", under="ignore"):
        return None if value is None else float(np.float32(value))


def _nothing(text: str) -> None:
    return None


def _date(text: str) -> date | FarTime | None:
    match = _DATE.fullmatch(text)
    days = None if match is None else _days(match[1], match[2], match[3] or "1", match[4] or "1")
    if days is None or not -(1 << 31) <= days < 1 << 31:
        return None
    return _day(days) or FarTime.of(days, text)


def _time(text: str, *, zoned: bool) -> datetime | FarTime | None:
    """The moment, or without `zoned` what the clock shows: a zone in the text is then left out."""
    if _CLOCK.fullmatch(text):
        if zoned:
            raise _of_today(text)
        return None
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    days = _days(match[1], match[2], match[3] or "1", match[4] or "1")
    hour, minute, second = (int(match[i] or 0) for i in (5, 6, 7))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    micros = (days * 86_400 + hour * 3600 + minute * 60 + second) * 10**6 + int((match[8] or "")[:6].ljust(6, "0"))
    zone = _zone(match[9].strip()) if match[9] else None
    if match[9] and zone is None:
        return None
    if zone is not None and zoned:
        return _in_utc(micros, zone, text)
    return _moment(micros) or _far(micros, text)


def _of_today(text: str) -> RefusedTable:
    feature = f"the text {text!r} of a partition is another timestamp each day, or in each release of Java"
    return RefusedTable("table", feature, "write the partition's value with a date and an offset")


def _in_utc(micros: int, zone: timezone | ZoneInfo, text: str) -> datetime | FarTime | None:
    local = _moment(micros)
    if isinstance(zone, ZoneInfo):
        if local is None:
            raise _of_today(text)
        offset = local.replace(tzinfo=zone).utcoffset() or timedelta()
    else:
        offset = zone.utcoffset(None)
    utc = micros - offset // timedelta(microseconds=1)
    moment = _moment(utc)
    return _far(utc, text) if moment is None else moment.replace(tzinfo=UTC)


def _far(micros: int, text: str) -> FarTime | None:
    return FarTime.of(micros, text) if -(1 << 63) <= micros < 1 << 63 else None


def _zone(name: str) -> timezone | ZoneInfo | None:
    """ZoneId.of, with Java's short names; None for no zone."""
    named = _SHORT.get(name, name)
    match = _OFFSET.fullmatch(named)
    if match is not None:
        hours, minutes, seconds = (int(match[i] or 0) for i in (2, 3, 4))
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if size > timedelta(hours=18) or minutes > 59 or seconds > 59:
            return None
        return timezone(-size if match[1] == "-" else size)
    if named in ("Z", "UTC", "GMT", "UT"):
        return UTC
    try:
        return ZoneInfo(named)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _days(sign: str, year_text: str, month_text: str, day_text: str) -> int | None:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; None for no day."""
    year, month, day = int(f"{sign}{year_text}"), int(month_text), int(day_text)
    # The calendar repeats after 400 years, which are 146,097 days.
    cycles, within = divmod(year, 400)
    try:
        return (date(within + 400, month, day) - _EPOCH).days + (cycles - 1) * 146_097
    except ValueError:
        return None


def _day(days: int) -> date | None:
    try:
        return _EPOCH + timedelta(days=days)
    except OverflowError:
        return None


def _moment(micros: int) -> datetime | None:
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=micros)
    except OverflowError:
        return None


_EPOCH: Final = date(1970, 1, 1)
_SPACE: Final = "".join(map(chr, range(0x21))) + "\x7f"
"""What UTF8String.trimAll takes away."""
_WIDE: Final = Context(prec=80)
_INTEGER: Final = re.compile(r"([+-]?)(?=[0-9.])([0-9]*)(?:\.[0-9]*)?", re.ASCII)
_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DECIMAL: Final = re.compile(_NUMBER)
_DOUBLE: Final = re.compile(rf"{_NUMBER}[dDfF]?")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?")
_DATE: Final = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_CLOCK: Final = re.compile(r"T?[0-9]{1,2}(?::[0-9]{1,2}){1,2}(?:\.[0-9]*)?.*|T[0-9]{1,2}.*", re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T](?:([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?( *[A-Za-z+-].*)?)?)?)?)?)?)?"
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_NUMBERS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
    "nan": math.nan,
}
_SHORT: Final[Mapping[str, str]] = {**SHORT_ZONES, "EST": "-05:00", "MST": "-07:00", "HST": "-10:00"}
_PARSERS: Final[Mapping[pa.DataType, Callable[[str], object]]] = {
    pa.bool_(): _boolean,
    pa.float32(): _single,
    pa.float64(): _double,
    pa.date32(): _date,
    pa.null(): _nothing,
}
