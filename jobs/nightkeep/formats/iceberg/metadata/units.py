"""Manifest entries -> the live data files and deletes of each partition, and the global deletes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Entry, FileContent, Status
from nightkeep.formats.iceberg.metadata.delete_index import require_targets, vectors_by_target
from nightkeep.formats.iceberg.metadata.features import unread_file
from nightkeep.formats.iceberg.metadata.identity_values import identity_values, two_values
from nightkeep.formats.iceberg.metadata.partition import Values, identity
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """The live files of a partition of a spec; empty if the snapshot removed the last one."""

    spec_id: int
    values: Values
    files: list[ContentFile] = field(default_factory=list)
    positional: list[ContentFile] = field(default_factory=list)
    equality: list[ContentFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Gathered:
    """`places` are the partitions, `everywhere` the equality deletes of all partitions of all specs. Both unordered."""

    places: tuple[PartitionFiles, ...]
    everywhere: tuple[ContentFile, ...]


def gather(schema: IcebergSchema, entries: Iterable[Entry], *, snapshot_id: int) -> Gathered:
    """The partitions of live files and of files that this snapshot deleted, and the global deletes.

    Raises CorruptMetadata for a file that is live twice, two vectors of a data file, and positional deletes of a data
    file in another partition.
    """
    places: dict[Hashable, PartitionFiles] = {}
    emptied: dict[Hashable, PartitionFiles] = {}
    live: dict[tuple[str, int | None], ContentFile] = {}
    everywhere: list[ContentFile] = []
    unpartitioned = {spec_id for spec_id in schema.specs if schema.is_global(spec_id)}
    for entry in entries:
        file = entry.file
        gone = entry.status is Status.DELETED
        if gone and entry.snapshot_id != snapshot_id:
            continue
        if not gone and live.setdefault(file.identity, file) is not file:
            raise CorruptMetadata(f"{schema.table}: {file.path}", "a file that is live once", "it twice")
        schema.spec(file.spec_id)
        key, place = identity(file.spec_id, file.partition), PartitionFiles(file.spec_id, file.partition)
        if file.content is FileContent.EQUALITY_DELETES and file.spec_id in unpartitioned:
            everywhere += [] if gone else [file]
            emptied |= {key: place} if gone else {}
            continue
        place = places.setdefault(key, place)
        if not gone:
            _list_of(place, file).append(file)
    _require_sound(live.values())
    # Deleted global deletes count as a partition only if the table has no other.
    return Gathered(tuple((places or emptied).values()), tuple(everywhere))


def unread_unit(schema: IcebergSchema, place: PartitionFiles, equality: Sequence[ContentFile]) -> RefusedTable | None:
    """Why no reader of ours reads a partition, whose equality deletes are `equality`; None if it is read."""
    unread = unread_file(schema, (*place.files, *place.positional, *equality))
    return unread or two_values(schema.table, identity_values(schema, place.spec_id, place.values), place.files)


def _list_of(place: PartitionFiles, file: ContentFile) -> list[ContentFile]:
    if file.content is FileContent.DATA:
        return place.files
    return place.positional if file.content is FileContent.POSITION_DELETES else place.equality


def _require_sound(live: Iterable[ContentFile]) -> None:
    files = tuple(live)
    vectors_by_target(file for file in files if file.is_vector)
    deletes = (file for file in files if file.referenced is not None)
    require_targets({file.path: file for file in files if file.content is FileContent.DATA}, deletes)
