"""Arrow tables of any engine -> rows of canonical JSON values. What is equal in two engines is equal here.

As in canonical.py: null is None, floating oddities, decimals, dates and timestamps are text, binary is hex. A struct is
an object, an array a list, a map a list of [key, value] in the order of its keys' JSON. Years may have five digits.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Self
from uuid import UUID

import pyarrow as pa
import pyarrow.types as kinds

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MICROS = 86_400 * 10**6
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
_UNITS = {"s": 10**6, "ms": 10**3, "us": 1}
_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.null(): "void",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """What an engine answered. `types` are Spark's names of the columns' types; equality is of all three."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return cls(tuple(answer["columns"]), tuple(answer["types"]), tuple(map(tuple, answer["rows"])))

    def column(self, name: str) -> tuple[Any, ...]:
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def ordered(self) -> "Rows":
        """By the JSON of each row: engines return rows in any order."""
        return Rows(self.columns, self.types, tuple(sorted(self.rows, key=json.dumps)))

    def parts(self, count: int) -> "list[Rows]":
        """The rows by the number in their first column, from 0, without it; each part is ordered."""
        head = (self.columns[1:], self.types[1:])
        return [Rows(*head, tuple(row[1:] for row in self.rows if row[0] == n)).ordered() for n in range(count)]


def answer(table: pa.Table) -> dict[str, Any]:
    """What Rows.of takes, as a server sends it."""
    columns = [canonical(column) for column in table.columns]
    return {
        "columns": table.column_names,
        "types": [type_text(field.type) for field in table.schema],
        "rows": [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * table.num_rows,
    }


def rows_of(table: pa.Table) -> Rows:
    return Rows.of(answer(table))


def canonical(column: "pa.ChunkedArray[Any]") -> list[Any]:
    write = _writer(column.type)
    return [None if value is None else write(value) for value in column.cast(_plain(column.type)).to_pylist()]


def type_text(kind: Any) -> str:
    """Arrow's type by Spark's name: views and large types are what they hold."""
    if kinds.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_text(field.type)}' for field in kind)}>"
    if kinds.is_map(kind):
        return f"map<{type_text(kind.key_type)},{type_text(kind.item_type)}>"
    if _is_array(kind):
        return f"array<{type_text(kind.value_type)}>"
    if kinds.is_timestamp(kind):
        return ("timestamp" if kind.tz else "timestamp_ntz") + ("_ns" if kind.unit == "ns" else "")
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(kind) or (
        "string" if _is_text(kind) or _is_uuid(kind) else "binary" if _is_bytes(kind) else str(kind)
    )


def _plain(kind: Any) -> Any:
    """A type whose Python values exist: those of dates and timestamps end with the year 9999."""
    if kinds.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if _is_array(kind):
        return pa.list_(_plain(kind.value_type))
    if kinds.is_timestamp(kind):
        return pa.int64()
    if kinds.is_date32(kind):
        return pa.int32()
    if kinds.is_time64(kind):
        return pa.int64()
    return pa.string() if _is_text(kind) else pa.binary() if _is_bytes(kind) else kind


def _writer(kind: Any) -> Callable[[Any], Any]:
    """A value that is not null -> its canonical form."""
    if kinds.is_struct(kind):
        fields = {field.name: _writer(field.type) for field in kind}
        return lambda value: {name: _maybe(write, value[name]) for name, write in fields.items()}
    if kinds.is_map(kind):
        key, item = _writer(kind.key_type), _writer(kind.item_type)
        return lambda value: sorted(([key(k), _maybe(item, v)] for k, v in value), key=_key_text)
    if _is_array(kind):
        element = _writer(kind.value_type)
        return lambda value: [_maybe(element, v) for v in value]
    if kinds.is_timestamp(kind) and kind.unit == "ns":
        suffix = "Z" if kind.tz else ""
        return lambda value: f"{timestamp_text(value // 1000)}{value % 1000:03d}{suffix}"
    if kinds.is_timestamp(kind):
        micros, suffix = _UNITS[kind.unit], "Z" if kind.tz else ""
        return lambda value: timestamp_text(value * micros) + suffix
    if kinds.is_decimal(kind):
        return lambda value: format(Decimal(value), f".{kind.scale}f")
    return _scalar_writer(kind)


def _scalar_writer(kind: Any) -> Callable[[Any], Any]:
    if kinds.is_date32(kind):
        return date_text
    if kinds.is_time64(kind):
        return lambda value: timestamp_text(value).partition("T")[2]
    if kinds.is_floating(kind):
        return floating_form
    if _is_uuid(kind):
        return lambda value: str(value if isinstance(value, UUID) else UUID(bytes=value))
    return bytes.hex if _is_bytes(kind) else lambda value: value


def floating_form(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def date_text(days: int) -> str:
    """Days of the epoch -> ISO text; the calendar repeats every 400 years, so Python's years stand for all."""
    cycles, day = divmod(days + _EPOCH_DAY - 1, _CYCLE_DAYS)
    within = date.fromordinal(day + 1)
    return f"{within.year + cycles * _CYCLE_YEARS:04d}-{within.month:02d}-{within.day:02d}"


def timestamp_text(micros: int) -> str:
    days, rest = divmod(micros, _DAY_MICROS)
    seconds, fraction = divmod(rest, 10**6)
    minutes, second = divmod(seconds, 60)
    return f"{date_text(days)}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{fraction:06d}"


def _maybe(write: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else write(value)


def _key_text(entry: Sequence[Any]) -> str:
    return json.dumps(entry[0])


def _is_array(kind: Any) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_list_view(kind))


def _is_text(kind: Any) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    variable = kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_binary_view(kind)
    return bool(variable or kinds.is_fixed_size_binary(kind))


def _is_uuid(kind: Any) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid"
