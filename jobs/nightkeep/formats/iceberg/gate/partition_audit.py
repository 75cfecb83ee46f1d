"""Rows of a new file -> faults unless the transforms of the file's partition spec give the values of its partition.

For files whose rows come from a partition of another spec. The gate computes the values by its own code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.gate.transform_values import transform_values
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.order_columns import column_of
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.gate.column_range import leaf_values
from nightkeep.kernels.arrow_buffers import OF_VIEWS
from nightkeep.model.arrow_types import Array


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    path: tuple[str, ...]
    transform: str
    expected: Hashable


@dataclass
class PartitionCheck:
    """Compares the rows of one file with its partition, as they come."""

    path: str
    fields: tuple[_Field, ...]
    _wrong: dict[str, int] = field(default_factory=dict)

    def watched(self, pieces: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
        for start, piece in pieces:
            for each in self.fields:
                if each.name not in self._wrong and piece.num_rows and not _is_all(piece, each):
                    self._wrong[each.name] = start
            yield start, piece

    def faults(self) -> Iterator[str]:
        for name, start in self._wrong.items():
            yield f"{self.path}: rows from {start} on are not of its partition, by the field {name}"


def partition_check(schema: IcebergSchema, file: ContentFile) -> PartitionCheck:
    """The check of a file. Raises CorruptMetadata for a partition field whose column the table has no longer."""
    fields = []
    for each, value in zip(schema.spec(file.spec_id).fields, file.partition, strict=True):
        if str(each.transform) == "void" and value is None:
            continue
        column = column_of(schema, each.source_id)
        if column is None:
            raise CorruptMetadata(f"{schema.table}: partition field {each.name}", "a column of the table", "none")
        fields.append(_Field(each.name, column.path, str(each.transform), identity(0, (value,))))
    return PartitionCheck(file.path, tuple(fields))


def _is_all(piece: pa.Table, each: _Field) -> bool:
    column = leaf_values(piece, each.path)
    kind: Any = OF_VIEWS.get(column.type, column.type)
    chunks: list[Array] = [chunk.cast(kind) for chunk in column.chunks]
    values = transform_values(pa.concat_arrays(chunks), each.transform)
    return {identity(0, (value,)) for value in _distinct(values)} == {each.expected}


def _distinct(values: Array) -> list[object]:
    """The distinct values in the form of manifests."""
    kind = values.type
    if pa.types.is_floating(kind):
        # Zeros of both signs are equal to Arrow.
        bits = np.unique(values.drop_null().to_numpy().view(f"i{kind.bit_width // 8}"))
        found: list[object] = [float(each) for each in bits.view(f"f{kind.bit_width // 8}")]
        return [*found, *([None] if values.null_count else [])]
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return pc.unique(values).to_pylist()
