"""One value -> the text that Paimon's Java writes. Text that depends on the writing JVM is refused, not guessed.

There are two texts: toString() of the internal value, and CAST(value AS STRING). Values are those of values.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias, TypeVar

import numpy as np

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value


def to_string(value: Value, kind: PaimonType) -> str:
    """Object.toString() of the internal object.

    Raises ValueError for binary, whose text is an object's address, and for types that are not primitive.
    """
    return _render(value, kind, _TO_STRING)


def cast_to_string(value: Value, kind: PaimonType) -> str:
    """CastExecutors.resolve(kind, STRING), with its wrong text for years of other than four digits.

    Raises ValueError for TIMESTAMP WITH LOCAL TIME ZONE, which Java shows in its default time zone, for binary that is
    not UTF-8, and for types that are not primitive.
    """
    return _render(value, kind, _CAST)


Held = TypeVar("Held")
_Render: TypeAlias = Callable[[Value, PaimonType], str]

_DAY_NANOS: Final = 86_400 * 10**9
_SECOND_NANOS: Final = 10**9


def _render(value: Value, kind: PaimonType, table: Mapping[TypeRoot, _Render]) -> str:
    if kind.root not in table:
        raise ValueError(f"text of {kind}: expected a type with one text in every JVM, found {value!r}")
    return table[kind.root](value, kind)


def _plain(value: Value, kind: PaimonType) -> str:
    return str(value)


def _boolean(value: Value, kind: PaimonType) -> str:
    return "true" if value else "false"


def _utf8(value: bytes, kind: PaimonType) -> str:
    return value.decode()


def _decimal(value: Decimal, kind: PaimonType) -> str:
    # BigDecimal has no negative zero.
    return f"{abs(value) if value.is_zero() else value:f}"


def _floating(value: float, kind: PaimonType) -> str:
    """Float.toString or Double.toString of JDK 19 and later. Older JDKs sometimes print one more digit."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    return sign + _java_notation(*_shortest(abs(value), kind))


def _shortest(value: float, kind: PaimonType) -> tuple[str, int]:
    """Digits d1d2.. and exponent of d1.d2.. x 10^exponent: the fewest digits that read back as `value`.

    Where one digit is enough, Java still takes the closest two.
    """
    width = np.float32 if kind.root is TypeRoot.FLOAT else np.float64
    text = np.format_float_scientific(width(value), unique=True, trim="-")
    two = f"{value:.1e}"
    if "." not in text and width(two) == width(value):
        text = two
    digits, _, exponent = text.partition("e")
    return digits.replace(".", "").rstrip("0") or "0", int(exponent)


def _java_notation(digits: str, exponent: int) -> str:
    if digits == "0":
        return "0.0"
    # Double.toString: plain from 10^-3 to below 10^7.
    if not -3 <= exponent < 7:
        return f"{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 2, "0")
    return f"{padded[: exponent + 1]}.{padded[exponent + 1 :]}"


def _iso_timestamp(value: int, kind: PaimonType) -> str:
    """LocalDateTime.toString: seconds only if needed, fraction of three, six or nine digits."""
    (year, month, day), seconds, nanos = _fields(value)
    date = f"{'+' if year > 9999 else ''}{year:0{4 if year >= 0 else 5}d}-{month:02d}-{day:02d}"
    if not seconds % 60 and not nanos:
        return f"{date}T{_clock(seconds)[:5]}"
    fraction = f"{nanos:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{date}T{_clock(seconds)}{'.' if fraction else ''}{fraction}"


def _cast_timestamp(value: int, kind: PaimonType) -> str:
    """DateTimeUtils.formatTimestamp: at least `precision` digits of fraction, more if they are not zero."""
    date, seconds, nanos = _fields(value)
    fraction = f"{nanos:09d}".rstrip("0").ljust(kind.precision or 0, "0")
    return f"{_odd_date(*date)} {_clock(seconds)}{'.' if fraction else ''}{fraction}"


def _cast_date(value: int, kind: PaimonType) -> str:
    return _odd_date(*_civil(value))


def _cast_time(value: int, kind: PaimonType) -> str:
    """DateTimeUtils.formatTimestampMillis: up to `precision` digits of fraction, at least one."""
    seconds, millis = divmod(value % 86_400_000, 1_000)
    if not kind.precision:
        return _clock(seconds)
    fraction = f"{millis:03d}"[: kind.precision].rstrip("0") or "0"
    return f"{_clock(seconds)}.{fraction}"


def _fields(value: int) -> tuple[tuple[int, int, int], int, int]:
    """Date, seconds of the day and nanoseconds of the second."""
    days, rest = divmod(value, _DAY_NANOS)
    return _civil(days), rest // _SECOND_NANOS, rest % _SECOND_NANOS


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month, day of a day since the epoch. Not by datetime, which is limited to the years 1 to 9999."""
    # Counted in 400-year eras from 0000-03-01, so that the leap day ends its year.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * shifted + 2) // 5 + 1


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _odd_date(year: int, month: int, day: int) -> str:
    """DateTimeUtils.ymd adds each digit to '0' with Java's remainder: negative years get characters below '0'."""
    sign = 1 if year >= 0 else -1
    digits = (chr(ord("0") + sign * (abs(year) // place % 10)) for place in (1000, 100, 10, 1))
    return f"{''.join(digits)}-{month:02d}-{day:02d}"


def _of(held: type[Held], render: Callable[[Held, PaimonType], str]) -> _Render:
    """A renderer for types whose values are of the class `held`, as in values.py."""

    def rendered(value: Value, kind: PaimonType) -> str:
        if not isinstance(value, held):
            raise TypeError(f"a {type(value).__name__}, expected a {held.__name__} for {kind}")
        return render(value, kind)

    return rendered


_ALIKE: Final[Mapping[TypeRoot, _Render]] = {
    TypeRoot.BOOLEAN: _boolean,
    TypeRoot.TINYINT: _plain,
    TypeRoot.SMALLINT: _plain,
    TypeRoot.INT: _plain,
    TypeRoot.BIGINT: _plain,
    TypeRoot.FLOAT: _of(float, _floating),
    TypeRoot.DOUBLE: _of(float, _floating),
    TypeRoot.DECIMAL: _of(Decimal, _decimal),
    TypeRoot.CHAR: _plain,
    TypeRoot.VARCHAR: _plain,
}
_TO_STRING: Final[Mapping[TypeRoot, _Render]] = {
    **_ALIKE,
    TypeRoot.DATE: _plain,
    TypeRoot.TIME: _plain,
    TypeRoot.TIMESTAMP: _of(int, _iso_timestamp),
    TypeRoot.TIMESTAMP_LTZ: _of(int, _iso_timestamp),
}
_CAST: Final[Mapping[TypeRoot, _Render]] = {
    **_ALIKE,
    TypeRoot.BINARY: _of(bytes, _utf8),
    TypeRoot.VARBINARY: _of(bytes, _utf8),
    TypeRoot.DATE: _of(int, _cast_date),
    TypeRoot.TIME: _of(int, _cast_time),
    TypeRoot.TIMESTAMP: _of(int, _cast_timestamp),
}
