"""Values of a change file -> the same values in the type of the table's column, or an error. Nothing is rounded or cut.

A change file may have other types than the table. The meaning of a type decides whether a column may be read from it.
Casting the result back shows whether every value was kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.model.arrow_types import ChunkedArray, Datum


def exactly(values: ChunkedArray, kind: pa.DataType, *, spelled: bool) -> ChunkedArray:
    """The same values as `kind`, nulls as nulls.

    `spelled`: floating point was read from decimal text, so 0.1 is exact in any type that prints it as 0.1. Strings
    are parsed in Iceberg's spelling. Raises ValueError naming one value and its type if `kind` never stands for that
    type (a number for a boolean, a timestamp without a zone for one with a zone), or cannot hold the value exactly.
    """
    if values.type == kind:
        return values
    if values.null_count == len(values):
        return pa.chunked_array([pa.nulls(len(values), cast(Any, kind))])
    if not _may_be(values.type, kind):
        raise ValueError(f"{_shown(values.drop_null())} of {values.type}, which is of another kind")
    exact, why = _tried(values, kind, spelled=spelled)
    if exact is None:
        raise ValueError(f"{_shown(_worst(values, kind, spelled=spelled))} of {values.type}, {why}")
    return exact


class _Meaning(Enum):
    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    DECIMAL = auto()
    DATE = auto()
    TIME = auto()
    LOCAL = auto()
    INSTANT = auto()
    TEXT = auto()
    BYTES = auto()


_NUMBERS: Final = (_Meaning.INTEGER, _Meaning.FLOAT, _Meaning.DECIMAL)
_PAIRS: Final = {
    *((each, each) for each in _Meaning),
    *((given, wanted) for given in _NUMBERS for wanted in _NUMBERS),
    # Not for bytes: Iceberg spells them in hexadecimal, while Arrow would take the text itself.
    *((_Meaning.TEXT, wanted) for wanted in _Meaning if wanted is not _Meaning.BYTES),
    # Some writers do not mark strings as such; Arrow refuses bytes that are not UTF-8.
    (_Meaning.BYTES, _Meaning.TEXT),
    (_Meaning.DATE, _Meaning.LOCAL),
    (_Meaning.LOCAL, _Meaning.DATE),
}
_MEANINGS: Final[Mapping[_Meaning, tuple[Callable[[pa.DataType], bool], ...]]] = {
    _Meaning.BOOLEAN: (pa.types.is_boolean,),
    _Meaning.INTEGER: (pa.types.is_integer,),
    _Meaning.FLOAT: (pa.types.is_floating,),
    _Meaning.DECIMAL: (pa.types.is_decimal,),
    _Meaning.DATE: (pa.types.is_date,),
    _Meaning.TIME: (pa.types.is_time,),
    _Meaning.LOCAL: (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,),
    _Meaning.INSTANT: (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,),
    _Meaning.TEXT: (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    _Meaning.BYTES: (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    ),
}


def _may_be(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of type `given` may be read as `kind`, by type alone.

    A struct may lack fields, which are then null. It must not have other fields.
    """
    given, wanted = _stored(given), _parts(kind)
    own = _parts(given)
    if pa.types.is_null(given):
        return True
    if wanted is None or own is None:
        return wanted is own and (_meaning(given), _meaning(kind)) in _PAIRS
    return own.keys() <= wanted.keys() and all(_may_be_within(own[name], wanted[name]) for name in own)


def _may_be_within(given: pa.DataType, kind: pa.DataType) -> bool:
    # A nested column is cast as a whole.
    return not _is_by_text(given, kind) and _may_be(given, kind)


def _is_by_text(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether to cast through text: Arrow's cast from decimals is off by one bit for one value in ten."""
    pair = (given, kind)
    return any(map(pa.types.is_decimal, pair)) and any(map(pa.types.is_floating, pair))


def _stored(kind: pa.DataType) -> pa.DataType:
    storage: pa.DataType = kind
    if isinstance(kind, pa.DictionaryType):
        storage = kind.value_type
    elif isinstance(kind, pa.BaseExtensionType):
        storage = kind.storage_type
    return storage


def _meaning(kind: pa.DataType) -> _Meaning | None:
    matching = (each for each, tests in _MEANINGS.items() if any(test(kind) for test in tests))
    return next(matching, None)


def _parts(kind: pa.DataType) -> Mapping[str, pa.DataType] | None:
    """The types inside a nested type, by name: lists have one, maps two."""
    if isinstance(kind, pa.StructType):
        return {f"field {field.name}": field.type for field in kind}
    if isinstance(kind, pa.MapType):
        return {"key": kind.key_type, "value": kind.item_type}
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return {"element": kind.value_type}
    return None


def _tried(values: ChunkedArray, kind: pa.DataType, *, spelled: bool) -> tuple[ChunkedArray | None, str]:
    """The cast values and ""; or None and the reason, if a value is lost."""
    try:
        cast_values = _cast(values, kind)
        kept = _is_kept(values, cast_values, spelled=spelled)
    except (ValueError, pa.ArrowException) as failure:
        return None, f"which it cannot hold as it is ({failure})"
    return (cast_values if kept else None), "which it cannot hold as it is"


def _cast(values: ChunkedArray, kind: pa.DataType) -> ChunkedArray:
    given = _stored(values.type)
    plain: Datum = values if given == values.type else values.cast(given)
    if _is_by_text(given, kind):
        return cast(ChunkedArray, plain.cast(pa.string()).cast(kind))
    if _meaning(given) is _Meaning.TEXT and pa.types.is_time(kind):
        # Arrow parses timestamps, but no times of day.
        moments = pc.replace_substring_regex(plain, "^", "1970-01-01T")
        return cast(ChunkedArray, moments.cast(pa.timestamp("us")).cast(kind))
    return cast(ChunkedArray, plain.cast(kind))


def _is_kept(given: ChunkedArray, cast_values: ChunkedArray, *, spelled: bool) -> bool:
    parts = _parts(_stored(given.type))
    if parts is None:
        return bool(pc.all(_same(given, cast_values, spelled=spelled), min_count=0).as_py())
    return all(_is_kept(_inner(given, name), _inner(cast_values, name), spelled=spelled) for name in parts)


def _inner(values: ChunkedArray, name: str) -> ChunkedArray:
    """One part of nested values, without the values below a null."""
    kind = values.type
    if isinstance(kind, pa.StructType):
        return cast(ChunkedArray, pc.struct_field(values, [name.removeprefix("field ")]))
    if isinstance(kind, pa.MapType):
        pairs: Any = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        entries: Datum = values.cast(pa.list_(pairs))
        return cast(ChunkedArray, pc.struct_field(pc.list_flatten(entries), [name]))
    return cast(ChunkedArray, pc.list_flatten(values))


def _same(given: ChunkedArray, other: ChunkedArray, *, spelled: bool) -> Datum:
    """For each value whether it equals the given one; null for nulls."""
    kind = _stored(given.type)
    given = given.cast(kind)
    if _meaning(kind) is _Meaning.TEXT and pa.types.is_floating(other.type):
        infinite = pc.and_(pc.is_inf(other), pc.invert(pc.match_substring(given, "inf", ignore_case=True)))
        return pc.and_(pc.invert(infinite), _same(given.cast(pa.float64()), other, spelled=True))
    if kind == other.type or _meaning(kind) in (_Meaning.TEXT, None):
        return pc.equal(given, given)
    back = _cast(other, kind)
    same = pc.equal(given, back)
    if not pa.types.is_floating(kind):
        return same
    same = pc.or_(same, pc.and_(pc.is_nan(given), pc.is_nan(back)))
    return pc.or_(same, pc.equal(given, other.cast(pa.string()).cast(kind))) if spelled else same


def _worst(values: ChunkedArray, kind: pa.DataType, *, spelled: bool) -> ChunkedArray:
    """The first value that does not fit, found by bisection."""
    while len(values) > 1:
        half = values.slice(0, len(values) // 2)
        values = values.slice(len(half)) if _tried(half, kind, spelled=spelled)[0] is not None else half
    return values


def _shown(values: ChunkedArray) -> str:
    """The first value as text; Arrow formats it if Python has no type for it."""
    first = values.slice(0, 1)
    try:
        return f"{first.cast(pa.string())[0].as_py()!r:.80}"
    except pa.ArrowException:
        return f"{first[0].as_py()!r:.80}"
