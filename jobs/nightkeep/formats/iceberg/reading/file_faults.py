"""A sample of the files that a commit added -> what their bytes contradict of its manifests. Reads data files.

Of any writer: bounds may be wider than the values, and counts may be left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from pyiceberg.types import FixedType, UUIDType
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.partition_values import require_partition_values
from nightkeep.formats.iceberg.data.stored_columns import format_of_name, open_columns
from nightkeep.formats.iceberg.deletes.position_deletes import read_positions
from nightkeep.formats.iceberg.deletes.vectors import read_vectors
from nightkeep.formats.iceberg.gate.file_audit import StatedLeaf, added, claim_faults, stated_leaves
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, Status
from nightkeep.formats.iceberg.metadata.features import unread_file
from nightkeep.formats.iceberg.metadata.file_records import PATH_FIELD
from nightkeep.formats.iceberg.metadata.first_version import completed
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.formats.iceberg.metadata.manifests import read_manifest
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, head
from nightkeep.formats.iceberg.reading.commit_files import listed_manifests, schema_of
from nightkeep.gate.column_range import ColumnRange, watched
from nightkeep.protocol.file_sample import SampleBudget, guarded, sampled_faults, size_faults
from nightkeep.protocol.past import FileSample
from nightkeep.storage import Storage

_TARGETS: Final = 5
"""Data files whose rows are counted for one file of position deletes."""


def file_faults(handle: TableHandle, commits: Sequence[int], sample: FileSample) -> Mapping[int, tuple[str, ...]]:
    """As `protocol.past.PastReading.file_faults`."""
    raw, location = handle.load()
    metadata = completed(raw, subject=location)
    snapshots = head(metadata, subject=location).snapshots
    budget = SampleBudget(sample)

    def look(version: int) -> Iterator[str]:
        schema = schema_of(metadata, snapshots[version], table=str(handle))
        opened = _Opened(handle.storage, schema, budget)
        for file in budget.chosen(_added(handle, snapshots[version], schema, version)):
            yield from opened.faults(file)

    def is_there(version: int) -> bool:
        return version in head(completed(handle.load()[0], subject=location), subject=location).snapshots

    return sampled_faults([version for version in commits if version in snapshots], budget, look, is_there)


def _added(handle: TableHandle, snapshot: Raw, schema: IcebergSchema, version: int) -> list[ContentFile]:
    manifests = listed_manifests(handle.storage, snapshot, table=str(handle)).values()
    own = (each for each in manifests if each.snapshot_id == version)
    entries = (entry for manifest in own for entry in read_manifest(handle.storage, manifest, schema))
    return [each.file for each in entries if each.status is Status.ADDED and each.snapshot_id == version]


class _Opened:
    """Opens files of one commit."""

    def __init__(self, storage: Storage, schema: IcebergSchema, budget: SampleBudget) -> None:
        self._storage, self._schema, self._budget = storage, schema, budget

    def faults(self, file: ContentFile) -> Iterator[str]:
        """Raises MissingFile for a file that is not there."""
        yield from size_faults(self._storage, file.name, file.bytes, path=file.path)
        yield from guarded(self._content_faults(file))

    def _content_faults(self, file: ContentFile) -> Iterator[str]:
        if unread_file(self._schema, [file]) is not None:
            return
        if file.is_vector:
            ((_, positions),) = read_vectors(self._storage, [(file, None)])
            yield from self._beyond(file, file.referenced or "", positions)
        elif file.content is FileContent.POSITION_DELETES:
            by_path = read_positions(self._storage, file)
            yield from _path_faults(file, by_path)
            for path in self._budget.chance.sample(sorted(by_path), min(len(by_path), _TARGETS)):
                yield from self._beyond(file, path, by_path[path])
        else:
            yield from self._row_faults(file)

    def _beyond(self, file: ContentFile, path: str, positions: BitMap64) -> Iterator[str]:
        rows = self._rows_of(path)
        if rows is not None and positions and positions.max() >= rows:
            yield f"{file.path} deletes position {positions.max()} of {path}, which has {rows} rows"

    def _rows_of(self, path: str) -> int | None:
        """None for a data file that is gone, or that is not of the format that its name ends in, Parquet by default."""
        try:
            columns = open_columns(self._storage, name_in(self._storage, path), format_of_name(path), subject=path)
        except (MissingFile, RefusedTable, CorruptMetadata):
            return None
        return int(columns.starts[-1])

    def _row_faults(self, file: ContentFile) -> Iterator[str]:
        reader = IcebergFileReader(self._storage, self._schema, file)
        if reader.rows != file.rows:
            yield f"{file.path} has {reader.rows} rows, its manifest states {file.rows}"
        if file.content is not FileContent.DATA:
            return
        try:
            require_partition_values(self._storage, self._schema, [file])
        except RefusedTable as failure:
            yield f"{file.path}: {failure.feature}"
        if reader.rows and reader.rows == file.rows:
            yield from self._statistics_faults(reader, file)

    def _statistics_faults(self, reader: IcebergFileReader, file: ContentFile) -> Iterator[str]:
        """By the rows of one part, such as a row group."""
        groups = len(reader.parts)
        group = self._budget.chance.randrange(groups)
        footer = reader.footer
        size = file.bytes // groups if footer is None else footer.row_group(group).total_byte_size
        if not self._budget.takes(size):
            return
        leaves = [leaf for leaf in stated_leaves(self._schema) if _is_compared(leaf)]
        seen = {leaf.path: ColumnRange() for leaf in leaves}
        names = list(dict.fromkeys(leaf.path[0] for leaf in leaves))
        for _ in watched(reader.pieces(names, [group]), seen, added):
            pass
        for leaf in leaves:
            # A bound of a type that the column had before is no bound to readers.
            with suppress(CorruptMetadata, ValueError, TypeError, OverflowError):
                rows = reader.rows if groups == 1 else None
                yield from claim_faults(file, leaf, seen[leaf.path], rows=rows, exact=False)


def _is_compared(leaf: StatedLeaf) -> bool:
    """Java orders uuids otherwise than their bytes."""
    return not isinstance(leaf.field.field_type, UUIDType | FixedType)


def _path_faults(file: ContentFile, paths: Collection[str]) -> Iterator[str]:
    """Readers look for the deletes of a data file by these bounds, which may be cut."""
    low, high = (file.bound(name, PATH_FIELD) for name in ("lower_bounds", "upper_bounds"))
    for path in sorted(paths):
        if (low is not None and path.encode() < low) or (high is not None and path.encode() > high):
            yield f"{file.path} deletes rows of {path}, which is outside of its bounds"
            return
        if file.referenced is not None and path != file.referenced:
            yield f"{file.path} deletes rows of {path}, its manifest states {file.referenced}"
            return
