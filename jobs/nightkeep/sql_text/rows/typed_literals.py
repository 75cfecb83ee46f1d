"""Values of a column <-> Spark SQL literals of exactly that type, as tuples compare only with tuples of equal types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from nightkeep.sql_text.rows.comparison_types import is_text


def spelled(value: object, kind: pa.DataType) -> str:
    """A value that is not null, as a literal. Raises ValueError for a type, or a value, that has none."""
    for is_kind, spell in _SPELL:
        if is_kind(kind):
            return spell(value, kind)
    raise ValueError(f"values of type {kind}")


def is_spelled_as(node: exp.Expression, kind: pa.DataType) -> bool:
    """Whether Spark gives this literal exactly the type `kind`."""
    plain = node.this if isinstance(node, exp.Neg) else node
    if isinstance(plain, exp.Cast | exp.TryCast):
        return bool(plain.to.sql(dialect="spark") == _name(kind))
    if isinstance(plain, exp.Literal):
        return is_text(kind) if plain.is_string else plain.this.isdigit() and kind == pa.int32()
    if isinstance(plain, exp.Boolean):
        return bool(pa.types.is_boolean(kind))
    return isinstance(plain, exp.HexString) and bool(pa.types.is_binary(kind))


def _name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return _NAMES.get(kind, "")


def _text(value: str, kind: pa.DataType) -> str:
    # All other characters between quotes stand for themselves.
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _float(value: float, kind: pa.DataType) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value}, which has no literal")
    return f"{value!r}{'F' if kind == pa.float32() else 'D'}"


def _moment(value: datetime, kind: pa.DataType) -> str:
    return f"{_name(kind)} '{value.isoformat(sep=' ')}'"


_NAMES: Final[Mapping[pa.DataType, str]] = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
}
_SUFFIX: Final[Mapping[pa.DataType, str]] = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
_SPELL: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], str]], ...]] = (
    (is_text, _text),
    (pa.types.is_boolean, lambda value, _: str(value).lower()),
    (pa.types.is_integer, lambda value, kind: f"{value}{_SUFFIX[kind]}"),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, lambda value, kind: f"CAST({value:f} AS {_name(kind)})"),
    (pa.types.is_date, lambda value, _: f"DATE '{value.isoformat()}'"),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_binary, lambda value, _: f"X'{value.hex()}'"),
)
