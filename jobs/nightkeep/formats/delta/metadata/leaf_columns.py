"""A schema -> its leaf columns, and which of them have statistics: StatisticsCollection.scala of delta-spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.model.variant_type import VARIANT

INDEXED_COLUMNS = 32
"""Default of delta.dataSkippingNumIndexedCols."""
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^.,`]+?))\s*([.,]|$)")


@dataclass(frozen=True, slots=True)
class DeltaLeaf:
    """A column or struct field that is not a struct. `path` has logical names, `stored` the physical ones.

    `ordered`: its statistics have bounds, not only a null count (SkippingEligibleDataType).
    """

    path: tuple[str, ...]
    stored: tuple[str, ...]
    type: pa.DataType

    @property
    def ordered(self) -> bool:
        kind = self.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        timed = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        return numeric or timed or pa.types.is_string(kind) or pa.types.is_large_string(kind)


def leaves(schema: DeltaSchema) -> tuple[DeltaLeaf, ...]:
    """Every leaf of the data columns, in schema order; an array, a map or a variant is one leaf."""
    columns: list[DeltaLeaf] = []
    for field in schema.data_fields:
        columns += _below((field.name,), (field.physical,), field.type, field.stored)
    return tuple(columns)


def indexed_leaves(schema: DeltaSchema) -> tuple[DeltaLeaf, ...]:
    """The leaves that have statistics, in schema order: those that the table's properties choose, and the columns that
    it is clustered by.

    `delta.dataSkippingStatsColumns` names leaves, or structs above them, in any case. Without it, they are the first
    `delta.dataSkippingNumIndexedCols` leaves; a negative number means all. Raises CorruptMetadata for unreadable
    settings.
    """
    every = leaves(schema)
    wanted = {leaf.stored for leaf in _chosen(schema, every)} | set(schema.clustering)
    return tuple(leaf for leaf in every if leaf.stored in wanted)


def _chosen(schema: DeltaSchema, every: Sequence[DeltaLeaf]) -> Sequence[DeltaLeaf]:
    named = schema.configuration.get("delta.dataSkippingStatsColumns")
    if named is not None:
        chosen = [tuple(part.lower() for part in path) for path in column_names(named)]
        return [leaf for leaf in every if any(_starts(leaf.path, path) for path in chosen)]
    count = whole_number(schema, "delta.dataSkippingNumIndexedCols", INDEXED_COLUMNS)
    return every if count < 0 else every[:count]


def whole_number(schema: DeltaSchema, key: str, default: int) -> int:
    """An integer table property. Raises CorruptMetadata."""
    text = schema.configuration.get(key, str(default))
    try:
        return int(text)
    except ValueError:
        raise CorruptMetadata(f"table property {key}", "a whole number", text) from None


def column_names(text: str) -> tuple[tuple[str, ...], ...]:
    """`a, b.c, `d.e`` as paths: ((a,), (b, c), (d.e,)). Raises CorruptMetadata."""
    paths: list[tuple[str, ...]] = []
    path: tuple[str, ...] = ()
    at, separator = 0, ","
    while separator:
        match = _NAME.match(text, at)
        if match is None:
            raise CorruptMetadata("list of column names", "names, dots and commas", text)
        quoted, plain, separator = match.groups()
        path = (*path, plain if quoted is None else quoted.replace("``", "`"))
        if separator != ".":
            paths, path = [*paths, path], ()
        at = match.end()
    return tuple(paths)


def _below(
    path: tuple[str, ...], stored: tuple[str, ...], kind: pa.DataType, written: pa.DataType
) -> Iterator[DeltaLeaf]:
    is_whole = written.equals(VARIANT, check_metadata=True)
    if is_whole or not isinstance(kind, pa.StructType) or not isinstance(written, pa.StructType):
        yield DeltaLeaf(path, stored, kind)
        return
    for place in range(kind.num_fields):
        child, other = kind.field(place), written.field(place)
        yield from _below((*path, child.name), (*stored, other.name), child.type, other.type)


def _starts(path: Sequence[str], prefix: Sequence[str]) -> bool:
    return [part.lower() for part in path[: len(prefix)]] == list(prefix)
