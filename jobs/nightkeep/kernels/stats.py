"""A column -> its file statistics. A reader that skips files by them never misses a matching row."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import is_bytes
from nightkeep.model.arrow_types import Column, Scalar

Bound: TypeAlias = "Scalar | None"

LAST_CODE_POINT = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)
_TRUNCATE = re.compile(r"TRUNCATE\((\d+)\)")


class Detail(Enum):
    """The kinds of Paimon's `metadata.stats-mode`."""

    NONE = "NONE"
    COUNTS = "COUNTS"
    TRUNCATE = "TRUNCATE"
    FULL = "FULL"


@dataclass(frozen=True, slots=True)
class StatsMode:
    """A statistics mode. `length`, for TRUNCATE only, counts code points of strings and bytes of binary values."""

    detail: Detail
    length: int | None = None

    def __post_init__(self) -> None:
        if (self.detail is Detail.TRUNCATE) != (self.length is not None):
            raise ValueError(f"stats mode {self.detail.value} with length {self.length}, expected for TRUNCATE")
        if self.length is not None and self.length < 1:
            raise ValueError(f"stats mode truncate({self.length}), expected a length of 1 or more")


# Paimon's default for value columns, and what it keeps of keys and system columns (StatsCollectorFactories).
DEFAULT_MODE = StatsMode(Detail.TRUNCATE, 16)
KEY_MODE = StatsMode(Detail.TRUNCATE, 128)


def parse_mode(text: str) -> StatsMode:
    """`none`, `counts`, `full` or `truncate(N)`, in any case. Raises ValueError naming the text."""
    upper = text.upper()
    match = _TRUNCATE.fullmatch(upper)
    if match is not None:
        return StatsMode(Detail.TRUNCATE, int(match[1]))
    if upper not in {Detail.NONE.value, Detail.COUNTS.value, Detail.FULL.value}:
        raise ValueError(f"stats mode {text!r}, expected none, counts, full or truncate(N)")
    return StatsMode(Detail(upper))


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Bounds of all values that are not null, and the count of nulls; each None if unknown.

    A bound has the column's type; that of any string or binary type is string() or binary().
    """

    min: Bound
    max: Bound
    null_count: int | None


def column_stats(column: Column, mode: StatsMode = DEFAULT_MODE) -> ColumnStats:
    """The statistics of one column of one file.

    These have no bounds: nested types, a float column with any NaN, a column of nulls, one whose truncated maximum
    cannot be rounded up, and one of texts whose least or greatest is no UTF-8. A bound of zero is -0.0 below and
    0.0 above, as in Parquet, because readers differ in whether the two are equal. Times and timestamps keep their unit.
    Source: TruncateSimpleColStatsCollector and ParquetSimpleStatsExtractor, which give a timestamp of more
    than six digits no bounds (here it has exact ones) and round U+D7FF up to a surrogate (here to U+E000).
    """
    if mode.detail is Detail.NONE:
        return ColumnStats(None, None, None)
    plain = _plain(column)
    if mode.detail is Detail.COUNTS or not _is_ordered(plain):
        return ColumnStats(None, None, column.null_count)
    bounds = pc.min_max(plain)
    low, high = bounds["min"], bounds["max"]
    if is_bytes(plain.type):
        low, high = cut(low, mode.length), raised(high, mode.length)
    elif pa.types.is_floating(plain.type):
        low, high = _signed_zero(low, -0.0), _signed_zero(high, 0.0)
    if not (low.is_valid and high.is_valid):
        return ColumnStats(None, None, column.null_count)
    return ColumnStats(low, high, column.null_count)


def contains(stats: ColumnStats, column: Column) -> str | None:
    """None when every claim of `stats` holds for `column`, otherwise what does not.

    Every value is compared with the bounds again, whatever computed them.
    """
    if stats.null_count is not None and stats.null_count != column.null_count:
        return f"null count {stats.null_count}, expected {column.null_count}"
    if stats.min is None and stats.max is None:
        return None
    plain = _plain(column)
    if not _is_ordered(plain):
        bounds = f"bounds {_shown(stats.min)} to {_shown(stats.max)}"
        return f"{bounds}, expected none for {plain.type} without an order or with NaN"
    if pa.types.is_floating(plain.type) and (narrow := _narrow_zero(stats, plain)):
        return narrow
    if stats.min is not None and _any(pc.less(plain, stats.min)):
        return f"minimum {_shown(stats.min)}, expected at most {_shown(pc.min(plain))}"
    if stats.max is not None and _any(pc.greater(plain, stats.max)):
        return f"maximum {_shown(stats.max)}, expected at least {_shown(pc.max(plain))}"
    return None


def _plain(column: Column) -> Column:
    """The same values in a type that Arrow can compare."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    return column


def _is_ordered(plain: Column) -> bool:
    if pa.types.is_floating(plain.type):
        return not _any(pc.is_nan(plain))
    return pa.types.is_primitive(plain.type) or pa.types.is_decimal(plain.type) or is_bytes(plain.type)


def _any(flags: Column) -> bool:
    return pc.any(flags).as_py() is True


def _shown(bound: Bound) -> str:
    """The value as text; Arrow has one for times that Python has no type for."""
    if bound is None:
        return "nothing"
    if is_bytes(bound.type) and bound.is_valid and _python(bound) is None:
        return "a text that is no UTF-8"
    return pa.array([bound]).to_string(skip_new_lines=True)[1:-1]


def _signed_zero(bound: Scalar, zero: float) -> Scalar:
    return cast(Scalar, pa.scalar(zero, bound.type)) if bound.as_py() == 0 else bound


def cut(bound: Scalar, length: int | None) -> Scalar:
    """A lower bound: the first `length` code points or bytes of `bound`; null for text that is no UTF-8."""
    value = _python(bound)
    return _text(None if value is None else value[:length], bound.type)


def raised(bound: Scalar, length: int | None) -> Scalar:
    """An upper bound of at most `length` code points or bytes that is at least `bound`; null if there is none, and for
    text that is no UTF-8."""
    value = _python(bound)
    if value is None or length is None or len(value) <= length:
        return _text(value, bound.type)
    if isinstance(value, bytes):
        kept = value[:length].rstrip(b"\xff")
        return _text(kept[:-1] + bytes([kept[-1] + 1]) if kept else None, bound.type)
    kept = value[:length].rstrip(chr(LAST_CODE_POINT))
    return _text(kept[:-1] + _next_character(kept[-1]) if kept else None, bound.type)


def _python(bound: Scalar) -> Any:
    """The text or the bytes; None for null, and for text that is no UTF-8."""
    try:
        return bound.as_py()
    except UnicodeDecodeError:
        return None


def _next_character(character: str) -> str:
    following = ord(character) + 1
    return chr(SURROGATES.stop if following in SURROGATES else following)


def _text(value: str | bytes | None, kind: pa.DataType) -> Scalar:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.scalar(value, pa.string() if is_text else pa.binary())


def _narrow_zero(stats: ColumnStats, plain: Column) -> str | None:
    """The fault of a zero bound that is too narrow: -0.0 is less than 0.0 in Paimon, but equal in Arrow and NumPy."""
    values = np.asarray(plain.drop_null())
    zeros = np.signbit(values[values == 0])
    if stats.min is not None and stats.min.as_py() == 0 and not np.signbit(stats.min.as_py()) and zeros.any():
        return "minimum 0.0, expected at most -0.0"
    if stats.max is not None and stats.max.as_py() == 0 and np.signbit(stats.max.as_py()) and not zeros.all():
        return "maximum -0.0, expected at least 0.0"
    return None
