"""One version of a Delta table as values: the live files of each partition, from the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.schema import TableSchema
from nightkeep.model import Address, FileSizes, UnitKey


class VectorKind(StrEnum):
    """Where a deletion vector is (PROTOCOL.md, "Deletion Vector Descriptor Schema": storageType)."""

    RELATIVE = "u"
    ABSOLUTE = "p"
    INLINE = "i"


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector's descriptor: `place` is pathOrInlineDv, `bytes` the payload's, `rows` its cardinality."""

    kind: VectorKind
    place: str
    offset: int | None
    bytes: int
    rows: int

    def __post_init__(self) -> None:
        if (self.kind is VectorKind.INLINE) != (self.offset is None) or self.bytes < 0 or self.rows < 0:
            found = f"kind {self.kind}, offset {self.offset}, {self.bytes} bytes, {self.rows} rows"
            raise CorruptMetadata(
                f"deletion vector {self.place}", "an offset unless it is inline, and no negative size", found
            )

    @property
    def unique_id(self) -> str:
        """What log replay tells vectors of one file apart by."""
        return f"{self.kind}{self.place}" + ("" if self.offset is None else f"@{self.offset}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live file. `path` is as the log has it (percent-encoded), `name` what storage calls it, below the root.

    `rows` are physical rows, None where statistics are missing; `raw` is the whole add action, `stats` its JSON text.
    """

    path: str
    name: str
    bytes: int
    rows: int | None
    vector: Vector | None
    stats: str | None
    tags: Mapping[str, str] = field(hash=False)
    raw: Mapping[str, object] = field(hash=False, repr=False)

    def __post_init__(self) -> None:
        if self.bytes < 0 or (self.rows is not None and self.deleted_rows > self.rows):
            found = f"{self.bytes} bytes, {self.deleted_rows} of {self.rows} rows deleted"
            raise CorruptMetadata(self.path, "a size, and no more deleted rows than rows", found)

    @property
    def identity(self) -> tuple[str, str | None]:
        """The key of log replay: two versions of the table with this pair show the same rows of the file."""
        return (self.path, self.vector.unique_id if self.vector else None)

    @property
    def deleted_rows(self) -> int:
        return self.vector.rows if self.vector else 0


@dataclass(frozen=True, slots=True)
class DeltaUnit:
    """The files of one partition, by path. `stored_partition` are its values as an add has them, by physical name."""

    key: UnitKey
    partition: Mapping[str, object]
    stored_partition: Mapping[str, str | None]
    files: tuple[DataFile, ...]
    schema: TableSchema


@dataclass(frozen=True)
class DeltaSnapshot:
    """One version. `raw_protocol` and `raw_metadata` are its actions; `commit_info` that of its own commit, if kept.

    `row_id_high_water_mark` is the highest row id ever assigned, None before the first; `in_commit_timestamp` in
    epoch milliseconds where the table keeps one. `units` include partitions whose last file this commit removed.
    `actions` are those of a staged commit, in their order, for whoever audits it; a published version has none here.
    """

    table: Address
    version: int
    schema: TableSchema
    units: tuple[DeltaUnit, ...]
    raw_protocol: Mapping[str, object]
    raw_metadata: Mapping[str, object]
    commit_info: Mapping[str, object]
    domains: Mapping[str, Mapping[str, object]]
    row_id_high_water_mark: int | None
    in_commit_timestamp: int | None
    actions: tuple[tuple[str, Mapping[str, object]], ...] = ()

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.schema.partition_columns

    @property
    def sizes(self) -> FileSizes:
        files = [file for unit in self.units for file in unit.files]
        return FileSizes(
            tuple(file.bytes for file in files),
            tuple(None for _ in files),
            sum(file.vector is not None for file in files),
        )

    @cached_property
    def by_key(self) -> Mapping[UnitKey, DeltaUnit]:
        return {unit.key: unit for unit in self.units}
