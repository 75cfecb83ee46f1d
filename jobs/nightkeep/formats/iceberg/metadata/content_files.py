"""What a snapshot's manifests list: data files, position deletes, deletion vectors, equality deletes; and manifests.

Iceberg table spec, "Manifests", "Manifest Lists"; field numbers are the spec's.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class FileContent(IntEnum):
    """What the rows of a file are (spec, data_file field 134)."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Status(IntEnum):
    """What a manifest entry says of its file (spec, manifest_entry field 0)."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    """Manifests hold data files or delete files, never both (spec, manifest_file field 517)."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True)
class ContentFile:
    """A file with everything that is inherited filled in: what a live manifest entry means.

    `path` is exactly the manifest's string, `name` what storage calls it. `format` is in lower case. `partition` has
    the values of the spec's fields in their order, as Avro stores them (days and hours as numbers, decimals as
    Decimal, uuid and fixed as bytes). `rows` is record_count: of a vector, its cardinality. `bytes` is of the whole
    file, a Puffin file's too. `sequence_number` is the data sequence number, `file_sequence_number` when it was
    added, `snapshot_id` by whom. `is_dated` is not set where a writer did not keep when it was added: the number is
    the data sequence number then, which is never higher. `equality_ids` are not empty for equality deletes only.
    `referenced` is the one data file that position deletes speak of: by field 143, or by equal bounds of file_path;
    None for several. `content_offset` and `content_bytes` are a vector's place in its Puffin file. `first_row_id` is
    set for data files of tables with row lineage. `raw` is the whole data_file struct by the spec's names, map fields
    as dicts by field id: what is carried over.
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
        """Unique among the live files of a snapshot: several vectors share a Puffin file."""
        return (self.path, self.content_offset)

    @property
    def is_vector(self) -> bool:
        return self.content is FileContent.POSITION_DELETES and self.format == "puffin"


@dataclass(frozen=True, slots=True)
class Entry:
    """A manifest entry; `file` has inherited values filled in. Sequence numbers of `file` are the entry's."""

    status: Status
    snapshot_id: int
    file: ContentFile


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that a commit adds. `raw` is its data_file struct by the spec's names, partition as a tuple.

    `sequence_number` None: that of the commit is inherited; else the data sequence number it keeps, as compaction's
    outputs do.
    """

    content: FileContent
    spec_id: int
    raw: Mapping[str, object] = field(hash=False)
    sequence_number: int | None = None

    @property
    def path(self) -> str:
        return str(self.raw["file_path"])


@dataclass(frozen=True, slots=True)
class Manifest:
    """One line of a manifest list (spec, "Manifest Lists").

    Counts are files and rows by status. `partitions` are its field summaries as they are stored, None where missing.
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
