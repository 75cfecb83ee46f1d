"""One snapshot of an Iceberg table as values: the live files of each partition, and the deletes that hold for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nightkeep.formats.iceberg.content_files import ContentFile, Manifest
from nightkeep.formats.iceberg.naming import OPERATION_PROPERTY
from nightkeep.formats.iceberg.schema import TableSchema
from nightkeep.model import Address, FileSizes, UnitKey

NO_SNAPSHOT = -1
"""The version of a table that nothing was ever written to (Java's value for no snapshot)."""


@dataclass(frozen=True, slots=True)
class IcebergUnit:
    """The data files of one partition of one spec, by path, and every live delete file in whose scope they are.

    `values` are the partition as manifests have it; `partition` the same by the names of partition fields, typed for
    filters, with None for fields that only other specs have. `positional` are position delete files and vectors of
    this very spec and partition, `equality` its own equality deletes and the global ones. Which of them hold for
    which file, sequence numbers decide (delete_index). A partition without data files is a unit while it has deletes
    of its own, or where this very snapshot removed its last file.
    """

    key: UnitKey
    partition: Mapping[str, object]
    spec_id: int
    values: tuple[object, ...]
    files: tuple[ContentFile, ...]
    positional: tuple[ContentFile, ...]
    equality: tuple[ContentFile, ...]
    schema: TableSchema


@dataclass(frozen=True)
class IcebergSnapshot:
    """`version` is the snapshot id, NO_SNAPSHOT for a table without one. `operation` and `summary` are the snapshot's.

    `manifests` are those of its list, in order; `raw` is the snapshot as table metadata has it; `metadata` the whole
    table metadata it was found in (raw JSON), `metadata_location` where that is. `next_row_id` is the table's, None
    without row lineage. `stray` are live deletes whose partition has no unit: global ones of an empty table.
    """

    table: Address
    version: int
    parent_version: int | None
    sequence_number: int
    timestamp_ms: int
    schema: TableSchema
    units: tuple[IcebergUnit, ...]
    operation: str
    summary: Mapping[str, str]
    manifests: tuple[Manifest, ...]
    raw: Mapping[str, object]
    metadata: Mapping[str, object]
    metadata_location: str
    next_row_id: int | None = None
    stray: tuple[ContentFile, ...] = field(default=())

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition fields of every spec, void ones left out."""
        specs = self.schema.specs.values()
        fields = (each for spec in specs for each in spec.fields if str(each.transform) != "void")
        return tuple(dict.fromkeys(each.name for each in fields))

    @property
    def sizes(self) -> FileSizes:
        files = [file for unit in self.units for file in unit.files]
        vectors = sum(file.is_vector for unit in self.units for file in unit.positional)
        return FileSizes(tuple(file.bytes for file in files), tuple(None for _ in files), vectors)

    @property
    def changes_rows(self) -> bool:
        """By what the snapshot says of itself. Deletes that only take another form are committed as `delete`, too."""
        return self.operation != "replace" and OPERATION_PROPERTY not in self.summary

    @cached_property
    def by_key(self) -> Mapping[UnitKey, IcebergUnit]:
        return {unit.key: unit for unit in self.units}
