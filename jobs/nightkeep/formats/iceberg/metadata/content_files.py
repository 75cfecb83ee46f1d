"""Values of manifests and manifest lists: data files, position deletes, deletion vectors, equality deletes, manifests.

Iceberg table spec, "Manifests", "Manifest Lists"; field numbers are the spec's.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum


class FileContent(IntEnum):
    """The kind of rows in a file (spec, data_file field 134)."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Status(IntEnum):
    """The status of a file in a manifest entry (spec, manifest_entry field 0)."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    """Manifests hold data files or delete files, never both (spec, manifest_file field 517)."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True)
class ContentFile:
    """A file of a manifest entry, with all inherited values filled in.

    `path` is exactly the manifest's string, `name` is the name in storage. `format` is in lower case. `partition` has
    the values of the spec's fields in their order, as Avro stores them (days and hours as numbers, decimals as
    Decimal, uuid and fixed as bytes). `rows` is record_count; for a vector that is its cardinality. `bytes` is the size
    of the whole file, also of a Puffin file. `sequence_number` is the data sequence number, `file_sequence_number` the
    number of the commit that added the file, `snapshot_id` its snapshot. `is_dated` is false if a writer lost the file
    sequence number: it is then set to the data sequence number, which is never higher. `equality_ids` is empty except
    for equality deletes. `referenced` is the one data file that position deletes apply to, by field 143 or by equal
    bounds of file_path; None for several. `content_offset` and `content_bytes` locate a vector in its Puffin file.
    `first_row_id` is set for data files of tables with row lineage. `raw` is the whole data_file struct by the spec's
    names, with map fields as dicts by field id; it is copied into new manifests.
    """

    content: FileContent
    path: str
    name: str
    format: str
    spec_id: int
    partition: tuple[object, ...]
    rows: int
    bytes: int
    sequence_number: int
    file_sequence_number: int
    snapshot_id: int
    equality_ids: tuple[int, ...] = ()
    referenced: str | None = None
    content_offset: int | None = None
    content_bytes: int | None = None
    first_row_id: int | None = None
    sort_order_id: int | None = None
    is_dated: bool = True
    raw: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def identity(self) -> tuple[str, int | None]:
        """Path and offset: unique among the live files of a snapshot, as several vectors share a Puffin file."""
        return (self.path, self.content_offset)

    @property
    def is_vector(self) -> bool:
        return self.content is FileContent.POSITION_DELETES and self.format == "puffin"

    def count(self, name: str, field_id: int) -> int | None:
        """A column's number in one of the maps of counts, such as `value_counts`; None if it is missing."""
        number = _of_field(self.raw, name, field_id)
        return number if isinstance(number, int) else None

    def bound(self, name: str, field_id: int) -> builtins.bytes | None:
        """A column's value in `lower_bounds` or `upper_bounds`; None if it is missing."""
        data = _of_field(self.raw, name, field_id)
        return data if isinstance(data, builtins.bytes) else None


def _of_field(raw: Mapping[str, object], name: str, field_id: int) -> object:
    values = raw.get(name)
    return values.get(field_id) if isinstance(values, Mapping) else None


@dataclass(frozen=True, slots=True)
class Entry:
    """A manifest entry. `file` has the entry's sequence numbers, and inherited values filled in."""

    status: Status
    snapshot_id: int
    file: ContentFile


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that a commit adds. `raw` is its data_file struct by the spec's names, with the partition as a tuple.

    `sequence_number` is its data sequence number, for example of compacted files; None to inherit the commit's.
    """

    content: FileContent
    spec_id: int
    raw: Mapping[str, object] = field(hash=False)
    sequence_number: int | None = None

    @property
    def path(self) -> str:
        return str(self.raw["file_path"])

    @property
    def partition(self) -> tuple[object, ...]:
        values = self.raw["partition"]
        return tuple(values) if isinstance(values, Sequence) else ()

    @property
    def rows(self) -> int:
        return self.number("record_count")

    def number(self, name: str) -> int:
        """A number of `raw`, such as `file_size_in_bytes`."""
        value = self.raw[name]
        if not isinstance(value, int):
            raise ValueError(f"{self.path}: expected {name} as a number, found {value!r}")
        return value


@dataclass(frozen=True, slots=True)
class Manifest:
    """One entry of a manifest list (spec, "Manifest Lists").

    Counts are files and rows by status. `partitions` are the field summaries as stored, None if missing.
    `min_sequence_number` is the least data sequence number of live entries. `first_row_id` is None for deletes and
    before format version 3.
    """

    path: str
    name: str
    bytes: int
    spec_id: int
    content: ManifestContent
    sequence_number: int
    min_sequence_number: int
    snapshot_id: int
    added_files: int
    existing_files: int
    deleted_files: int
    added_rows: int
    existing_rows: int
    deleted_rows: int
    partitions: tuple[Mapping[str, object], ...] | None = field(default=None, hash=False)
    key_metadata: builtins.bytes | None = None
    first_row_id: int | None = None

    @property
    def live_files(self) -> int:
        return self.added_files + self.existing_files
