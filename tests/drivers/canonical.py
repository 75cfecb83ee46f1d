"""Arrow columns <-> the canonical JSON values all drivers speak. Equal values have equal forms."""

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1)
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TYPE = re.compile(r"([A-Z]+)(?:\((\d+)(?:, *(\d+))?\))?( WITH LOCAL TIME ZONE)?( NOT NULL)?")


class TypeText(NamedTuple):
    """A primitive Paimon type's text, taken apart: DECIMAL(12, 2) is ("DECIMAL", 12, 2, False)."""

    name: str
    first: int
    second: int
    local: bool

    @classmethod
    def parse(cls, text: str) -> "TypeText":
        found = _TYPE.fullmatch(text)
        if found is None:
            raise ValueError(f"type: expected a primitive Paimon type, found {text!r}")
        name, first, second, local, _ = found.groups()
        return cls(name, int(first or 0), int(second or 0), local is not None)


def rows_from_arrow(table: pa.Table, types: Sequence[str]) -> list[list[Any]]:
    """A table's rows; `types` are the columns' Paimon types in the table's order."""
    columns = [_from_arrow(column, TypeText.parse(text)) for column, text in zip(table.columns, types, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def column_to_arrow(values: Iterable[Any], type_text: str, arrow_type: Any) -> "pa.Array[Any]":
    """Canonical values of one column, in the Arrow type an engine wants."""
    column: pa.Array[Any]
    if TypeText.parse(type_text).name == "TIMESTAMP":
        unit = _UNITS[arrow_type.unit]
        ticks = [None if value is None else _nanos(value) * unit // 10**9 for value in values]
        column = pa.array(ticks, pa.int64()).cast(arrow_type)
    else:
        objects = [None if value is None else to_python(value, type_text) for value in values]
        column = pa.array(objects, arrow_type)
    return column


def to_python(value: Any, type_text: str) -> Any:
    """A canonical value as the Python object a predicate takes. Timestamps are cut to microseconds."""
    match TypeText.parse(type_text):
        case ("DECIMAL", *_):
            return Decimal(value)
        case ("FLOAT" | "DOUBLE", *_):
            return float(value)
        case ("BINARY" | "VARBINARY" | "BYTES", *_):
            return bytes.fromhex(value)
        case ("DATE", *_):
            return date.fromisoformat(value)
        case ("TIME", *_):
            return time.fromisoformat(value)
        case ("TIMESTAMP", _, _, local):
            at = _EPOCH + timedelta(microseconds=_nanos(value) // 1000)
            return at.replace(tzinfo=UTC) if local else at
        case _:
            return value


def order_key(value: Any, type_text: str) -> Any:
    """A key that compares canonical values as their type does, NaN last and -0.0 before 0.0."""
    match TypeText.parse(type_text).name:
        case "DECIMAL":
            return Decimal(value)
        case "FLOAT" | "DOUBLE":
            number = float(value)
            return (math.isnan(number), 0.0 if math.isnan(number) else number, math.copysign(1, number))
        case _:
            # ISO text and hex order as the values do.
            return value


def _from_arrow(column: "pa.ChunkedArray[Any]", kind: TypeText) -> list[Any]:
    match kind.name:
        case "TIMESTAMP":
            unit = _UNITS[column.type.unit]
            ticks = column.cast(pa.int64()).to_pylist()
            return [None if tick is None else _timestamp(tick * (10**9 // unit), kind) for tick in ticks]
        case "FLOAT" | "DOUBLE":
            return [None if value is None else _floating(value) for value in column.to_pylist()]
        case "DECIMAL":
            return [None if value is None else format(value, f".{kind.second}f") for value in column.to_pylist()]
        case "BINARY" | "VARBINARY" | "BYTES":
            return [None if value is None else value.hex() for value in column.to_pylist()]
        case "DATE":
            return [None if value is None else value.isoformat() for value in column.to_pylist()]
        case "TIME":
            return [None if value is None else value.isoformat("milliseconds") for value in column.to_pylist()]
        case _:
            return list(column.to_pylist())


def _floating(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def _timestamp(nanos: int, kind: TypeText) -> str:
    seconds, rest = divmod(nanos, 10**9)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    digits = f".{rest:09d}"[: kind.first + 1] if kind.first else ""
    return text + digits + ("Z" if kind.local else "")


def _nanos(text: str) -> int:
    """ISO text in UTC, any number of fraction digits up to nine -> nanoseconds of the epoch."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = (datetime.fromisoformat(whole) - _EPOCH) // timedelta(seconds=1)
    return seconds * 10**9 + int(fraction.ljust(9, "0") or 0)
