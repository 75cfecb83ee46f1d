"""Values of a column's older type -> those that Paimon Java shows under the newer one (CastExecutors). For reads alone.

Pairs that are not here are refused by name. What a type with a local time zone shows depends on Java's own zone; texts
of FLOAT and DOUBLE, and what becomes of times before 1970, depend on its release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.text_conversions import (
    boolean_of_text,
    cut_and_filled,
    decimal_of_text,
    floating_of_text,
    integer_of_text,
    text_of_decimal,
)
from nightkeep.formats.paimon.metadata.types import MAX_LENGTH, PaimonType, TypeRoot

Conversion = Callable[[Any, PaimonType, PaimonType], Any]

_INTEGERS: Final = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT)
_FLOATS: Final = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_TEXTS: Final = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_BYTES: Final = (TypeRoot.BINARY, TypeRoot.VARBINARY)
_WIDE: Final = 76
"""Digits of a decimal256: a DECIMAL(38, 0) with 38 more digits after the point fits."""


def conversion_of(old: PaimonType, new: PaimonType) -> Conversion | None:
    """How Java converts values of `old` into `new`; None if that is not handled. What it gives is of `new.arrow`.

    The conversion raises pa.ArrowInvalid for values that Java fails on, and for some that Java takes.
    """
    if old.nullable and not new.nullable:
        return None
    if old.root is TypeRoot.DATE and new.root is TypeRoot.VARCHAR and new.length != MAX_LENGTH:
        return None
    return _CONVERSIONS.get((old.root, new.root))


def _cast(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return values.cast(new.arrow)


def _wrapped(values: Any, old: PaimonType, new: PaimonType) -> Any:
    """Whole numbers keep their low bits, DOUBLE becomes the nearest FLOAT, as does a whole number."""
    return values.cast(new.arrow, safe=False)


def _truncated(values: Any, old: PaimonType, new: PaimonType) -> Any:
    """Java's narrowing of a floating number: towards zero, to the ends of INT or BIGINT; NaN is 0. Then low bits."""
    kind = np.int64 if new.root is TypeRoot.BIGINT else np.int32
    numbers = _numbers(values.cast(pa.float64()))
    limits = np.iinfo(kind)
    # The greatest BIGINT is no double: from 2^63 on, all doubles become it.
    high, low = numbers >= float(limits.max), numbers <= float(limits.min)
    inside = np.where(high | low | np.isnan(numbers), 0.0, numbers).astype(kind)
    whole = np.where(high, limits.max, np.where(low, limits.min, inside))
    return _with_nulls(whole, values).cast(new.arrow, safe=False)


def _numbers(values: Any) -> Any:
    return values.fill_null(0).to_numpy()


def _with_nulls(numbers: Any, values: Any) -> Any:
    return pa.array(numbers, mask=values.is_null().to_numpy())


def _rescaled(values: Any, old: PaimonType, new: PaimonType) -> Any:
    """Rounds half away from zero, and is null where the digits do not suffice."""
    assert new.precision is not None and new.scale is not None
    held: Any = values.type
    wide = values.cast(pa.decimal256(_WIDE, held.scale))
    if new.scale < held.scale:
        wide = pc.round(wide, ndigits=new.scale, round_mode="half_towards_infinity")
    wide = wide.cast(pa.decimal256(_WIDE, new.scale))
    limit = pa.scalar(10 ** (new.precision - new.scale), pa.decimal256(_WIDE, 0)).cast(wide.type)
    fits = pc.less(pc.abs(wide), limit)
    return pc.if_else(fits, wide, pa.scalar(None, wide.type)).cast(new.arrow)


def _decimal_of_integer(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return _rescaled(values.cast(pa.int64()).cast(pa.decimal128(19, 0)), old, new)


def _decimal_of_text(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return _rescaled(decimal_of_text(values), old, new)


def _integer_of_decimal(values: Any, old: PaimonType, new: PaimonType) -> Any:
    """Towards zero, then the low bits."""
    wide: Any = pc.trunc(values.cast(pa.decimal256(_WIDE, old.scale or 0)))
    whole = wide.cast(pa.decimal128(38, 0)).combine_chunks()
    buffer: Any = whole.buffers()[1]
    words = np.frombuffer(buffer, np.int64)[2 * whole.offset :][: 2 * len(whole) : 2]
    return _with_nulls(words, values).cast(new.arrow, safe=False)


def _floating_of_decimal(values: Any, old: PaimonType, new: PaimonType) -> Any:
    """The nearest DOUBLE, of which a FLOAT is the nearest: rounded twice, as Java does."""
    return floating_of_text(text_of_decimal(values, old.scale or 0), pa.float64()).cast(new.arrow, safe=False)


def _text(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return cut_and_filled(values.cast(pa.string()), new)


def _text_of_decimal(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return cut_and_filled(text_of_decimal(values, old.scale or 0), new)


def _bytes(values: Any, old: PaimonType, new: PaimonType) -> Any:
    """Cut to the length; BINARY is filled up with zeros."""
    values, length = values.cast(pa.binary()), new.length or 0
    if new.root is TypeRoot.BINARY:
        zeros: Any = pa.scalar(b"\0" * length, pa.binary())
        values = pc.binary_join_element_wise(values, zeros, pa.scalar(b"", pa.binary()))
    return values if length == MAX_LENGTH else pc.binary_slice(values, 0, length)


def _floating_of_text(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return floating_of_text(values, new.arrow)


def _integer_of_text(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return integer_of_text(values, new.arrow)


def _boolean_of_text(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return boolean_of_text(values)


def _boolean_of_integer(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return pc.not_equal(values, pa.scalar(0, values.type))


def _decimal_of_boolean(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return _rescaled(values.cast(pa.int8()).cast(pa.decimal128(19, 0)), old, new)


def _number_of_boolean(values: Any, old: PaimonType, new: PaimonType) -> Any:
    return values.cast(pa.int8()).cast(new.arrow)


def _text_of_date(values: Any, old: PaimonType, new: PaimonType) -> Any:
    years: Any = pc.year(values)
    extremes: Any = pc.min_max(years).as_py()
    if years.null_count < len(years) and not 1 <= extremes["min"] <= extremes["max"] <= 9999:
        raise pa.ArrowInvalid("a day before year 1 or after 9999")
    return values.cast(pa.string())


_Pairs = Mapping[tuple[TypeRoot, TypeRoot], Conversion]


def _between(olds: tuple[TypeRoot, ...], news: tuple[TypeRoot, ...], conversion: Conversion) -> _Pairs:
    return {(old, new): conversion for old in olds for new in news}


_BOOLEAN: Final = (TypeRoot.BOOLEAN,)
_DECIMAL: Final = (TypeRoot.DECIMAL,)
_DATE: Final = (TypeRoot.DATE,)
_TIMESTAMP: Final = (TypeRoot.TIMESTAMP,)
_CONVERSIONS: Final[_Pairs] = {
    **_between(_INTEGERS, _INTEGERS + _FLOATS, _wrapped),
    **_between(_FLOATS, _INTEGERS, _truncated),
    **_between(_FLOATS, _FLOATS, _wrapped),
    **_between(_DECIMAL, _DECIMAL, _rescaled),
    **_between(_INTEGERS, _DECIMAL, _decimal_of_integer),
    **_between(_DECIMAL, _INTEGERS, _integer_of_decimal),
    **_between(_DECIMAL, _FLOATS, _floating_of_decimal),
    **_between(_INTEGERS + _BOOLEAN + _TEXTS, _TEXTS, _text),
    **_between(_DECIMAL, _TEXTS, _text_of_decimal),
    **_between(_BYTES + _TEXTS, _BYTES, _bytes),
    # Java does not cut these to their length.
    **_between(_BYTES, _TEXTS, _cast),
    **_between(_TEXTS, _INTEGERS, _integer_of_text),
    **_between(_TEXTS, _FLOATS, _floating_of_text),
    **_between(_TEXTS, _DECIMAL, _decimal_of_text),
    **_between(_TEXTS, _BOOLEAN, _boolean_of_text),
    **_between(_INTEGERS, _BOOLEAN, _boolean_of_integer),
    **_between(_BOOLEAN, _INTEGERS + _FLOATS, _number_of_boolean),
    **_between(_BOOLEAN, _DECIMAL, _decimal_of_boolean),
    **_between(_DATE, (TypeRoot.VARCHAR,), _text_of_date),
    **_between(_DATE, _TIMESTAMP, _cast),
}
