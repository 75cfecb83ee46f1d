"""Columns of Parquet files that Paimon Java, Spark and Arrow read differently, or one of them not at all: refused.

Files of other writers come into tables by Paimon's migrations. Java reads a time of up to 6 digits by the column's
precision, whatever unit the file names; Arrow by the unit. Java fails where Arrow would widen a number, and Spark where
Java would narrow one. Nested values are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pyarrow.parquet as pq

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot

_INT: Final = frozenset({"INT32"})
_TEXT: Final = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
_PHYSICAL: Final[Mapping[TypeRoot, frozenset[str]]] = {
    TypeRoot.BOOLEAN: frozenset({"BOOLEAN"}),
    **dict.fromkeys((TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.DATE, TypeRoot.TIME), _INT),
    TypeRoot.BIGINT: frozenset({"INT64"}),
    TypeRoot.FLOAT: frozenset({"FLOAT"}),
    TypeRoot.DOUBLE: frozenset({"DOUBLE"}),
    TypeRoot.CHAR: _TEXT,
    TypeRoot.VARCHAR: _TEXT,
}
"""What Java, and Spark for the check, read as each type, where Arrow would make values of more."""
_TIMES: Final = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_MILLISECOND_PRECISION, _MICROSECOND_PRECISION = 3, 6


def refuse_unlike(column: pq.ColumnSchema, kind: PaimonType, *, subject: str) -> None:
    """Raise RefusedTable if values of `kind` are not what Arrow makes of this flat column."""
    found = _unlike(column, kind)
    if found is not None:
        raise RefusedTable(
            subject,
            f"column {column.name} of type {kind} is stored as {found}",
            "engines read it differently, or not at all; write the rows again with the engine that has them right",
        )


def _unlike(column: pq.ColumnSchema, kind: PaimonType) -> str | None:
    physical = str(column.physical_type)
    if kind.root in _TIMES:
        return _other_unit(column, kind.precision or 0) if physical == "INT64" else None
    if kind.root is TypeRoot.DECIMAL:
        is_other = column.logical_type.type == "DECIMAL" and column.scale != kind.scale
        return f"DECIMAL of scale {column.scale}" if is_other else None
    return None if physical in _PHYSICAL.get(kind.root, (physical,)) else physical


def _other_unit(column: pq.ColumnSchema, precision: int) -> str | None:
    """The stored unit, if it is not that of the precision; a unit that a file does not name is milliseconds or
    microseconds to Java, by a precision of up to 6."""
    stored = json.loads(column.logical_type.to_json()).get("timeUnit")
    if precision > _MICROSECOND_PRECISION:
        return None if stored else "INT64 without a unit"
    own = "milliseconds" if precision <= _MILLISECOND_PRECISION else "microseconds"
    return None if stored in (None, own) else f"{stored}"
