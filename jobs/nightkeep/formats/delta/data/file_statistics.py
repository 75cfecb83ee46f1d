"""Chunks of one new file -> the statistics of its add action. Computed from the data itself.

Rules of StatisticsCollection.scala of delta-spark 4.4. Where readers may differ on what a bound means, none is written:
no bounds of floating columns with values that are not finite, of dates and times outside the years 1 to 9999.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.delta.metadata.leaf_columns import DeltaLeaf, indexed_leaves, whole_number
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.kernels.arrow_buffers import leaf_values
from nightkeep.model.arrow_types import Array, ChunkedArray, Scalar

PREFIX_LENGTH: Final = 32
"""Default of delta.dataSkippingStringPrefixLength: length of a string bound, in UTF-16 units."""
_ASCII_MAX, _LAST_CHARACTER = "\x7f", chr(0x10FFFF)
_LAST_PAIR: Final = _LAST_CHARACTER.encode("utf-16-le")
_UNIT: Final = 2


class DeltaFileStats:
    """The statistics of one file's rows. Every chunk is added once; its columns have logical names."""

    def __init__(self, schema: DeltaSchema) -> None:
        self._seen = [_Seen(leaf) for leaf in indexed_leaves(schema)]
        self._prefix = whole_number(schema, "delta.dataSkippingStringPrefixLength", PREFIX_LENGTH)
        self._states_tightness = schema.has_vectors
        self.rows = 0

    def add(self, chunk: pa.Table) -> None:
        """Add a chunk. Raises KeyError if it lacks a column with statistics; columns of type void may be missing."""
        for seen in self._seen:
            if pa.types.is_null(seen.leaf.type):
                seen.nulls += chunk.num_rows
            else:
                seen.add(leaf_values(chunk, seen.leaf.path))
        self.rows += chunk.num_rows

    def json(self) -> str:
        """The text of `stats`, ordered as delta-spark does: physical names, null values left out."""
        parts = {"numRecords": str(self.rows)}
        if any(seen.leaf.ordered for seen in self._seen):
            parts["minValues"] = _tree((seen.leaf, seen.low_text(self._prefix)) for seen in self._ordered())
            parts["maxValues"] = _tree((seen.leaf, seen.high_text(self._prefix)) for seen in self._ordered())
        if self._seen:
            parts["nullCount"] = _tree((seen.leaf, str(seen.nulls)) for seen in self._seen)
        if self._states_tightness:
            parts["tightBounds"] = "true"
        return _object(parts)

    def _ordered(self) -> list[_Seen]:
        return [seen for seen in self._seen if seen.leaf.ordered]


@dataclass(slots=True)
class _Seen:
    """Running statistics of one column: null count, bounds of non-null values, and whether a floating value was NaN."""

    leaf: DeltaLeaf
    nulls: int = 0
    low: Scalar | None = None
    high: Scalar | None = None
    has_nan: bool = False

    def add(self, column: ChunkedArray) -> None:
        self.nulls += column.null_count
        if not self.leaf.ordered or column.null_count == len(column):
            return
        floating = pa.types.is_floating(column.type)
        if floating and not self.has_nan:
            self.has_nan = pc.any(pc.is_nan(column)).as_py() is True
        bounds = pc.min_max(column)
        self.low = _least(self.low, bounds["min"], column.type, pc.min)
        self.high = _least(self.high, bounds["max"], column.type, pc.max)

    def low_text(self, prefix: int) -> str | None:
        if self.low is None:
            return None
        value = _python(self.low)
        if isinstance(value, str):
            return _json_text(value[:prefix])
        return _text(-0.0 if value == 0 and isinstance(value, float) else value, self.low.type)

    def high_text(self, prefix: int) -> str | None:
        # Spark orders NaN last, other engines first or not at all: with NaN, there is no bound.
        if self.high is None or self.has_nan:
            return None
        value = _python(self.high)
        if isinstance(value, str):
            return _json_text(truncated_maximum(value, prefix))
        return _text(0.0 if value == 0 and isinstance(value, float) else value, self.high.type)


def truncated_maximum(value: str, prefix: int) -> str | None:
    """An upper bound, of about `prefix` UTF-16 units, of all texts that start like `value`. None if there is none.

    truncateMaxStringAgg: the tie-breaker is U+007F if the next unit is below it, else the highest code point. The part
    cut off is never below the tie-breaker.
    """
    units = value.encode("utf-16-le")
    count = len(units) // _UNIT
    if count <= prefix:
        return value
    if prefix <= 0:
        return None
    at = prefix + _splits_pair(units, prefix)
    while at <= 2 * prefix:
        if at >= count:
            return value
        rest = units[at * _UNIT :]
        if not rest.startswith(_LAST_PAIR):
            kept = units[: at * _UNIT].decode("utf-16-le")
            return kept + (_ASCII_MAX if _first_unit(rest) < ord(_ASCII_MAX) else _LAST_CHARACTER)
        at += 2
    return None


def _splits_pair(units: bytes, at: int) -> bool:
    """Whether the unit before `at` is the first half of a surrogate pair."""
    return 0xD800 <= _first_unit(units[(at - 1) * _UNIT :]) < 0xDC00


def _first_unit(units: bytes) -> int:
    return int.from_bytes(units[:_UNIT], "little")


def _least(so_far: Scalar | None, low: Scalar, kind: pa.DataType, choose: Callable[[Array], Scalar]) -> Scalar | None:
    """The least (pc.min) or greatest (pc.max) of the bound so far and the next one, by `choose`."""
    if so_far is None or not low.is_valid:
        return low if low.is_valid else so_far
    return choose(pa.array([so_far, low], kind))


def _python(bound: Scalar) -> object:
    """The bound as a Python value. None if Python has none: years beyond its calendar, bytes that are not UTF-8."""
    try:
        return bound.as_py()
    except (ValueError, OverflowError):
        return None


def _text(value: object, kind: pa.DataType) -> str | None:
    match value:
        case datetime():
            milliseconds = f"{value:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f".{value.microsecond // 1000:03d}"
            return _json_text(milliseconds + ("Z" if getattr(kind, "tz", None) else ""))
        case date():
            return _json_text(value.isoformat())
        case Decimal():
            return format(value, "f")
        case float():
            # A float is written with all digits of its double: the short text would be no bound once the type widens.
            return repr(value) if isfinite(value) else None
        case int():
            return str(value)
    return None


def _json_text(value: str | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _tree(leaves: Iterable[tuple[DeltaLeaf, str | None]]) -> str:
    """Nested JSON objects of the leaves. A struct without values is an empty object, as in delta-spark."""
    root: dict[str, Any] = {}
    for leaf, text in leaves:
        place = root
        for name in leaf.stored[:-1]:
            place = place.setdefault(name, {})
        if text is not None:
            place[leaf.stored[-1]] = text
    return _object(root)


def _object(members: Mapping[str, Any]) -> str:
    texts = (
        f"{json.dumps(name, ensure_ascii=False)}:{value if isinstance(value, str) else _object(value)}"
        for name, value in members.items()
    )
    return "{" + ",".join(texts) + "}"
