"""Files -> the bounds of their columns as Arrow arrays. Reads only their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.metadata.binary_row import decode_row
from nightkeep.formats.paimon.metadata.schema import PaimonField
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile, Schemas
from nightkeep.formats.paimon.metadata.type_changes import is_converted
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.formats.paimon.metadata.values import Value
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model.arrow_types import Array

_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def file_bounds(
    schemas: Schemas, files: Sequence[PaimonDataFile], columns: Iterable[PaimonField]
) -> Mapping[tuple[str, ...], FileBounds]:
    """Bounds by column path. A file whose statistics lack the column, or have it in a type that is not known to keep
    its order, or has no value of its type there, has unknown bounds; a missing null count is taken as 0."""
    stated = [_Stated(schemas, file) for file in files]
    rows = np.array([file.rows for file in files], np.int64)
    return {(column.name,): _bounds(stated, rows, column) for column in columns}


class _Stated:
    """The statistics of one file: lowest value, highest value and null count by field id."""

    def __init__(self, schemas: Schemas, file: PaimonDataFile) -> None:
        written, stats = schemas.by_id.get(file.schema_id), file.record["_VALUE_STATS"]
        self.by_id: dict[int, tuple[PaimonField, Value, Value, int]] = {}
        if written is None:
            return
        listed = file.record["_VALUE_STATS_COLS"]
        fields = written.fields if listed is None else written.select(tuple(listed))
        types = [field.type for field in fields]
        if any(kind.root is TypeRoot.OTHER for kind in types):
            return
        try:
            lows, highs = (decode_row(stats[side], types, optional=True) for side in ("_MIN_VALUES", "_MAX_VALUES"))
        except ValueError:
            return
        nulls = stats["_NULL_COUNTS"] or [None] * len(fields)
        if len(nulls) != len(fields):
            return
        for field, low, high, none in zip(fields, lows, highs, nulls, strict=True):
            known = type(none) is int and 0 <= none <= file.rows
            self.by_id[field.id] = (field, low, high, none if known else 0)

    def of(self, column: PaimonField) -> tuple[Value, Value, int]:
        found = self.by_id.get(column.id)
        if found is None:
            return None, None, 0
        field, low, high, nulls = found
        if is_converted(field.type, column.type):
            return None, None, nulls
        return low, high, nulls


def _bounds(files: Sequence[_Stated], rows: np.typing.NDArray[np.int64], column: PaimonField) -> FileBounds:
    stated = [file.of(column) for file in files]
    lows = _array([low for low, _, _ in stated], column.type.arrow, up=False)
    highs = _array([high for _, high, _ in stated], column.type.arrow, up=True)
    return FileBounds(lows, highs, rows - np.array([nulls for _, _, nulls in stated], np.int64))


def _array(values: Sequence[Value], kind: pa.DataType, *, up: bool) -> Array:
    """Values in the column's type. Instants are whole nanoseconds, rounded `up` or down to the column's unit."""
    if pa.types.is_timestamp(kind):
        unit = _NANOS[kind.unit]
        ticks = [None if v is None else -(-int(v) // unit) if up else int(v) // unit for v in values]
        return pa.array(ticks, pa.int64()).cast(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array(values, kind)
