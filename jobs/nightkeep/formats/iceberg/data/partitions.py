"""Rows -> partitions, for any partition spec. pyiceberg-core transforms whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import NestedField, StructType

from nightkeep.formats.iceberg.data.transforms import transformed
from nightkeep.kernels.changelog import key_codes
from nightkeep.kernels.curve import order_of
from nightkeep.model.arrow_types import Array, ChunkedArray

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A partition: `values` in the form of manifests, `rows` the indexes of its rows, ascending.

    `is_everything`: the partition has all rows.
    """

    values: tuple[object, ...]
    rows: Rows
    is_everything: bool = False


def partition_rows(rows: pa.Table, schema: Schema, spec: PartitionSpec) -> Iterator[Partitioned]:
    """The partitions of the rows, ordered by their first rows. An unpartitioned table has one partition."""
    if not rows.num_rows:
        return
    if not spec.fields:
        yield Partitioned((), np.arange(rows.num_rows), is_everything=True)
        return
    fields = {str(number): _values(rows, schema, field) for number, field in enumerate(spec.fields)}
    values = pa.table(fields)
    encoded = pa.array(key_codes(values)).dictionary_encode()
    # The partition's number of each row. Numbers follow the order of first rows.
    place = encoded.indices.to_numpy()
    order, counts = order_of(place.astype(np.uint64)), np.bincount(place)
    stops = np.cumsum(counts)
    values_of = values.take(order[stops - counts]).to_pylist()
    for number, stop in enumerate(stops):
        yield Partitioned(tuple(values_of[number].values()), order[stop - counts[number] : stop])


def source_column(rows: pa.Table, schema: Schema, field_id: int) -> Array:
    """A column, or a field of a struct, by its id; null where a struct around it is null."""
    path = _path(schema.fields, field_id)
    column = _whole(rows.column(path[0]))
    return pc.struct_field(column, path[1:]) if path[1:] else column


def _whole(column: ChunkedArray) -> Array:
    if column.num_chunks == 1:
        return cast(Array, column.chunk(0))
    return cast(Array, pa.concat_arrays([*column.chunks, pa.array([], column.type)]))


def _path(fields: Sequence[NestedField], field_id: int) -> list[str]:
    """The path of names to a field; empty if none of `fields` contains it."""
    for field in fields:
        if field.field_id == field_id:
            return [field.name]
        below = _path(field.field_type.fields, field_id) if isinstance(field.field_type, StructType) else []
        if below:
            return [field.name, *below]
    return []


def _values(rows: pa.Table, schema: Schema, field: PartitionField) -> Array:
    if isinstance(field.transform, VoidTransform):
        return pa.nulls(rows.num_rows, pa.int32())
    source = source_column(rows, schema, field.source_id)
    return _stored(transformed(source, schema.find_type(field.source_id), field.transform))


def _stored(values: Array) -> Array:
    """Dates, times and timestamps as numbers, in the form of manifests."""
    kind = values.type
    if pa.types.is_date(kind):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(kind) or pa.types.is_time(kind) else values
