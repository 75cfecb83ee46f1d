"""Partition values of a manifest's entries -> its field summaries (spec, field 507), by which planners skip it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyiceberg.types import IcebergType, UUIDType

from nightkeep.formats.iceberg.metadata.conversions import to_bytes

Summary = Mapping[str, object]


def field_summaries(types: Sequence[IcebergType], partitions: Sequence[Sequence[object]]) -> tuple[Summary, ...]:
    """One summary for each partition field, in the spec's order: contains_null, contains_nan, lower and upper bound.

    Bounds are None where all values are null or NaN (PartitionSummary.java).
    """
    return tuple(_summary(kind, _distinct(values[at] for values in partitions)) for at, kind in enumerate(types))


def _summary(kind: IcebergType, values: Sequence[Any]) -> Summary:
    present = [value for value in values if value is not None]
    kept = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    order = _java_uuid if isinstance(kind, UUIDType) else _signed_zero
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": len(kept) < len(present),
        "lower_bound": to_bytes(kind, min(kept, key=order)) if kept else None,
        "upper_bound": to_bytes(kind, max(kept, key=order)) if kept else None,
    }


def _distinct(values: Iterable[object]) -> list[object]:
    """Each value once. Floating point 0.0 and -0.0 are different values, and so is every NaN."""
    return list({struct.pack("<d", value) if isinstance(value, float) else value: value for value in values}.values())


def _signed_zero(value: object) -> tuple[object, ...]:
    """A sort key by which -0.0 is less than 0.0 (spec, note 2 of data_file)."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else (value,)


def _java_uuid(value: bytes) -> tuple[int, ...]:
    """A sort key in Java's order of UUIDs, whose planner reads these bounds: two signed 64-bit numbers."""
    return struct.unpack(">qq", value)
