"""The part of tables without keys in packing and clustering: columns, bounds, marks and readers, and refusals.

Which files are small or worn is as in AppendCompactCoordinator.java. Bins and a second run that finds nothing to do are
those of the other formats; of buckets that keep the order of rows, bins are of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.columns import ClusterColumns, Paths
from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.clustering.layout import Bounds
from nightkeep.clustering.layout_names import cube_of, layout_mark, packed_mark, run_of
from nightkeep.clustering.live_rows import Hidden, LiveRows
from nightkeep.clustering.packing import is_settled
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.sizing import is_gone
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.append_reader import AppendFileReader
from nightkeep.formats.paimon.data.append_write import LEVEL, AppendFileWriter, WrittenAppendFile
from nightkeep.formats.paimon.data.file_statistics import level_stats_mode, stats_modes
from nightkeep.formats.paimon.deletes.append_vectors import vectors_of
from nightkeep.formats.paimon.metadata.file_formats import shifts_times
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, keeps_order, level_formats, option_bool
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile, append_files
from nightkeep.formats.paimon.rewrite.append.file_bounds import file_bounds
from nightkeep.formats.paimon.rewrite.append.ordered_bins import ordered_bins
from nightkeep.formats.paimon.rewrite.append.prune import PruneTask, with_pruning
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.kernels.stats import Detail
from nightkeep.model import Clustering, Request, Run, UnitKey
from nightkeep.protocol import LayoutReading, OpenWide, TableLayout, Work
from nightkeep.storage import Storage

ADVICE: Final = "set fields.NAME.stats-mode to truncate(16) or full"
_BOUNDED: Final = (Detail.FULL, Detail.TRUNCATE)


def refuse_keys(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a table with a primary key: its files are sorted runs, which packing would mix."""
    if snapshot.schema.primary_keys:
        feature = f"{request.operation} of a table with a primary key is not handled"
        raise RefusedTable(snapshot.table.name, feature, "use upgrade, which compacts its sorted runs")


def refuse_unhandled(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for the first feature of a table without keys, or of its files, that we do not handle."""
    for feature, advice in (*_option_features(snapshot.schema), *_file_features(snapshot)):
        raise RefusedTable(snapshot.table.name, feature, advice)


@dataclass(frozen=True, slots=True)
class AppendInputs:
    """The `files` that one task replaces. Of `bucket` only what reads, writes and orders its files is used."""

    bucket: Bucket
    files: Sequence[AppendFile]

    @property
    def key(self) -> UnitKey:
        return self.bucket.key

    def rows(self, storage: Storage) -> LiveRows[AppendFile]:
        return live_rows(storage, self.bucket)

    def writer(self, storage: Storage, run: Run, layout: FileLayout) -> AppendFileWriter:
        schema = self.bucket.schemas.current
        live = [file.file for file in self.files if not is_gone(file)]
        first = min((file.min_sequence for file in live), default=0)
        last = self._last_start(live) if live and keeps_order(schema) else first
        naming = PaimonNaming(run, self.key, mark=mark_of(schema, layout))
        return AppendFileWriter(
            storage,
            self.bucket,
            naming,
            first_sequence=first,
            last_start=last,
            now_ms=run.now_ms,
            group_bytes=layout.group_bytes,
        )

    def edit(self, written: Sequence[WrittenAppendFile], *, removed: Sequence[AppendFile]) -> BucketEdit:
        """The edit of data files alone: a task of its own prunes the vector files of the unit."""
        bucket = self.bucket
        return BucketEdit(
            bucket.partition_bytes,
            bucket.key.bucket or 0,
            bucket.total_buckets,
            tuple(file.file.record for file in removed),
            tuple(file.record for file in written),
            None,
        )

    def _last_start(self, live: Sequence[PaimonDataFile]) -> int:
        """The highest number that a new file can begin with before the next file that stays, or that is appended."""
        last = max(file.min_sequence for file in live)
        later = [file.min_sequence for file in self.bucket.files if file.min_sequence > last]
        return min(later) - 1 if later else max(file.max_sequence for file in live)


AppendPack = PackTask[AppendFile, WrittenAppendFile, BucketEdit]
AppendCluster = ClusterTask[AppendFile, WrittenAppendFile, BucketEdit]


def live_rows(storage: Storage, bucket: Bucket) -> LiveRows[AppendFile]:
    def opened(file: AppendFile) -> AppendFileReader:
        return AppendFileReader(storage, bucket, file.file)

    def hidden(files: Sequence[AppendFile]) -> Hidden[AppendFile]:
        vectors = vectors_of(storage, bucket, {file.name for file in files})
        return lambda file: vectors.get(file.name)

    return LiveRows(opened, hidden)


def mark_of(schema: PaimonSchema, layout: FileLayout) -> str:
    """The mark in names of files with this layout. A clustering has the table's own names."""
    return layout_mark(layout, {field.name: field.id for field in schema.fields})


def cluster_files(
    snapshot: PaimonSnapshot, bucket: Bucket, request: Request
) -> Work[AppendPack | AppendCluster | OpenWide | PruneTask] | None:
    """The work of clustering, and the pruning of vectors."""
    return with_pruning(LAYOUT.cluster_files(snapshot, bucket, request), bucket)


def pack_files(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[AppendPack | PruneTask] | None:
    """The work of packing, and the pruning of vectors."""

    def neighbours(chosen: Sequence[AppendFile]) -> Sequence[Sequence[AppendFile]]:
        return ordered_bins(append_files(bucket), chosen, sizes_of(snapshot, request).target)

    bins_of = neighbours if keeps_order(snapshot.schema) else None
    return with_pruning(LAYOUT.pack_files(snapshot, bucket, request, bins_of=bins_of), bucket)


def layout_reading(storage: Storage) -> LayoutReading[PaimonSnapshot]:
    return replace(LAYOUT.layout_reading(storage), read=layout)


def layout(snapshot: PaimonSnapshot) -> TableLayout:
    """The bounds of every live file, for each column with statistics. Raises RefusedTable for a table with keys."""
    if snapshot.schema.primary_keys:
        feature = "rows of a table with a primary key are sorted by it"
        raise RefusedTable(snapshot.table.name, feature, "only tables without keys can be clustered")
    if keeps_order(snapshot.schema):
        feature = "rows of fixed buckets are read in the order of writing"
        raise RefusedTable(snapshot.table.name, feature, "only tables that promise no order can be clustered")
    return LAYOUT.layout(snapshot)


def refuse_order(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a clustering of rows that are read in the order of writing."""
    if request.clustering is not None and keeps_order(snapshot.schema):
        feature = f"clustering of bucket = {snapshot.schema.options['bucket']} is not handled"
        advice = "its rows are read in the order of writing; if none needs it, set bucket-append-ordered = false"
        raise RefusedTable(snapshot.table.name, feature, advice)


def _option_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    if option_bool(schema, "clustering.incremental"):
        yield "option clustering.incremental = true is not handled", "the engine keeps levels of clustered files"


def _file_features(snapshot: PaimonSnapshot) -> Iterator[tuple[str, str]]:
    for bucket in snapshot.units:
        for file in bucket.files:
            yield from _features(bucket.path(file), file)


def _features(path: str, file: PaimonDataFile) -> Iterator[tuple[str, str]]:
    if file.record.get("_WRITE_COLS") is not None:
        yield f"{path} has only some columns of its rows, which is not handled", "compact the table with its engine"
    if file.record.get("_FIRST_ROW_ID") is not None:
        yield f"{path} has row ids, which is not handled", "compact the table with its engine"
    if file.level != 0:
        yield f"{path} is on level {file.level} of a table without keys, which is not handled", "use its engine"


@dataclass(frozen=True, slots=True)
class AppendLeaf:
    """A column. Its statistics have bounds where the table's options ask for them."""

    field: PaimonField
    ordered: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        return (self.field.name,)

    @property
    def type(self) -> pa.DataType:
        return self.field.type.arrow


def indexed_fields(schema: PaimonSchema) -> tuple[PaimonField, ...]:
    """The columns whose statistics in new files have bounds, partition columns included."""
    file_format = level_formats(schema, 1)[LEVEL]
    modes = stats_modes(schema, level_stats_mode(schema, LEVEL), file_format=file_format)
    every = zip(schema.fields, modes, strict=True)
    return tuple(field for field, mode in every if mode.detail in _BOUNDED and _has_bounds(schema, field, file_format))


def _has_bounds(schema: PaimonSchema, field: PaimonField, file_format: str) -> bool:
    is_shifted = file_format == "orc" and field.type.root is TypeRoot.TIMESTAMP_LTZ and shifts_times(schema)
    return not field.type.is_nested and not is_shifted


def _columns(snapshot: PaimonSnapshot) -> ClusterColumns:
    schema = snapshot.schema
    every = tuple(AppendLeaf(field) for field in schema.fields if field.name not in schema.partition_keys)
    indexed = tuple(map(AppendLeaf, indexed_fields(schema)))
    return ClusterColumns(every, indexed, schema.partition_keys, ADVICE)


def _listed(bucket: Bucket) -> Sequence[PaimonDataFile]:
    return bucket.files


def _listed_of(files: Sequence[AppendFile]) -> Sequence[PaimonDataFile]:
    return [file.file for file in files]


def _bounds(snapshot: PaimonSnapshot, files: Sequence[PaimonDataFile], paths: Paths) -> Bounds:
    return file_bounds(snapshot.schemas, files, snapshot.schema.select(tuple(name for (name,) in paths)))


def _cube_of(snapshot: PaimonSnapshot, clustering: Clustering) -> Callable[[AppendFile], str | None]:
    mark = mark_of(snapshot.schema, FileLayout(0, clustering))
    return lambda file: cube_of(file.name, mark)


def _is_settled(files: Sequence[AppendFile], target_bytes: int) -> bool:
    mark = packed_mark(target_bytes)
    return is_settled(files, lambda file: run_of(file.name, mark), lambda file: file.file.created_ms)


def _inputs(snapshot: PaimonSnapshot, bucket: Bucket, files: Sequence[AppendFile], request: Request) -> AppendInputs:
    return AppendInputs(bucket, files)


LAYOUT: Final[FormatLayout[PaimonSnapshot, Bucket, PaimonDataFile, AppendFile, WrittenAppendFile, BucketEdit]] = (
    FormatLayout(
        listed=_listed,
        files=append_files,
        listed_of=_listed_of,
        sizes=sizes_of,
        columns=_columns,
        bounds=_bounds,
        cube_of=_cube_of,
        is_settled=_is_settled,
        inputs=_inputs,
        rows=live_rows,
    )
)
