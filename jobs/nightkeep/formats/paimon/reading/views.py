"""Snapshot and view -> what is read: files one by one where no rows of theirs are merged, else overlapping files
together.

Follows MergeTreeSplitGenerator and IntervalPartition of Paimon 2.0.0. Level-0 files are always merged: a writer that
does not count its deletes (pypaimon 2.1.0) would show them as rows.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.binary_row import SortKey, sort_key
from nightkeep.formats.paimon.metadata.merge_engine import sequence_fields
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, hides_level0, skips_level0, top_level
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot, Schemas
from nightkeep.protocol.reading import FileSection, ReadFile, ReadView


def default_view(snapshot: PaimonSnapshot) -> ReadView:
    """What Paimon's own batch read shows (CoreOptions.batchScanSkipLevel0)."""
    schema = snapshot.schema
    if not schema.primary_keys or hides_level0(schema):
        return ReadView.RAW
    return ReadView.MERGE_ON_READ


def sections(snapshot: PaimonSnapshot, view: ReadView) -> Sequence[FileSection[Bucket]]:
    """Raises RefusedTable for the raw view of a table whose levels may repeat keys."""
    schema = snapshot.schema
    if view is ReadView.RAW and schema.primary_keys and not _is_unique_above_level0(schema):
        feature = "the raw view of a table with primary keys and without deletion vectors is not handled"
        raise RefusedTable(snapshot.table.name, feature, f"use view {ReadView.MERGE_ON_READ} or none")
    return tuple(section for bucket in snapshot.units for section in _sections(bucket, view) if section.files)


def narrowed(bucket: Bucket, names: Collection[str]) -> Bucket:
    """The bucket with only these files, their vectors and their schemas."""
    files = tuple(file for file in bucket.files if file.name in names)
    used = {file.schema_id for file in files} | {bucket.schemas.current.id}
    by_id = {number: schema for number, schema in bucket.schemas.by_id.items() if number in used}
    return replace(
        bucket,
        files=files,
        vectors=tuple(vector for vector in bucket.vectors if vector.data_file in names),
        index_records=tuple(_narrowed(bucket.index_records, names)),
        schemas=Schemas(bucket.schemas.current, by_id),
    )


def content(bucket: Bucket) -> Hashable:
    """The files with their levels, and the places of their vectors: a vector file is written once."""
    files = frozenset((file.name, file.level, file.bytes) for file in bucket.files)
    return files, bucket.index_files, bucket.vectors


def _narrowed(records: Sequence[Record], names: Collection[str]) -> Iterator[Record]:
    """The entries of vector files with only the vectors of these files; none of a file without any."""
    for record in records:
        ranges = [item for item in record.get("_DELETIONS_VECTORS_RANGES") or [] if item["f0"] in names]
        if ranges:
            yield {**record, "_DELETIONS_VECTORS_RANGES": ranges}


def _is_unique_above_level0(schema: PaimonSchema) -> bool:
    return skips_level0(schema)


def _sections(bucket: Bucket, view: ReadView) -> Iterator[FileSection[Bucket]]:
    schema = bucket.schemas.current
    _require_whole_rows(bucket)
    if not schema.primary_keys:
        yield _section(bucket, bucket.files)
        return
    files = _seen(bucket, view)
    levels = {file.level for file in files}
    unique = 0 not in levels and (len(levels) == 1 or _is_unique_above_level0(schema))
    if unique and not any(file.deletes_unknown_or_some for file in files):
        yield _section(bucket, files)
        return
    alone: list[PaimonDataFile] = []
    for group in _overlapping(files, schema):
        if len(group) == 1 and group[0].level > 0 and not group[0].deletes_unknown_or_some:
            alone += group
        else:
            yield _section(bucket, group, merges=True)
    yield _section(bucket, alone)


def _require_whole_rows(bucket: Bucket) -> None:
    """Raises RefusedTable for a file with only some columns of its rows, as tables with row tracking may have them."""
    for file in bucket.files:
        if file.record.get("_WRITE_COLS") is not None:
            feature = f"{bucket.path(file)} has only some columns of its rows, which is not handled"
            raise RefusedTable(bucket.path(file), feature, "compact the table with its engine")


def _seen(bucket: Bucket, view: ReadView) -> Sequence[PaimonDataFile]:
    match view:
        case ReadView.MERGE_ON_READ:
            return bucket.files
        case ReadView.RAW:
            return [file for file in bucket.files if file.level > 0]
        case ReadView.READ_OPTIMIZED:
            # What the system table `$ro` reads (ReadOptimizedTable.java).
            top = top_level(bucket.schemas.current)
            return [file for file in bucket.files if file.level == top]


def _overlapping(files: Sequence[PaimonDataFile], schema: PaimonSchema) -> Iterator[list[PaimonDataFile]]:
    """Groups of files whose key ranges overlap, directly or through others of the group, by key."""
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    ranges = sorted(
        ((sort_key(file.min_key, types), sort_key(file.max_key, types), file) for file in files),
        key=lambda each: (each[0], each[2].name),
    )
    group: list[PaimonDataFile] = []
    reached: SortKey = ()
    for low, high, file in ranges:
        if group and low > reached:
            yield group
            group = []
        reached = max(reached, high) if group else high
        group.append(file)
    if group:
        yield group


def _section(bucket: Bucket, files: Sequence[PaimonDataFile], *, merges: bool = False) -> FileSection[Bucket]:
    schema = bucket.schemas.current
    decisive = frozenset({*schema.primary_keys, *schema.partition_keys}) if merges else frozenset()
    unit = narrowed(bucket, {file.name for file in files})
    return FileSection(unit, tuple(ReadFile(file.name, file.bytes, file.rows) for file in unit.files), merges, decisive)


def merging_schema(schema: PaimonSchema, columns: Collection[str]) -> PaimonSchema:
    """The schema by which a reader merges rows to show `columns`: with only the columns that this needs.

    A reader merges plainly, with vectors as without: a key whose only row is a retract has no row. A compaction with
    vectors merges such a row as well, and may make a row of it (LookupMergeFunction.java).
    """
    groups = any(key.startswith("fields.") and key.endswith(".sequence-group") for key in schema.options)
    kept = {*columns, *schema.primary_keys, *schema.partition_keys, *sequence_fields(schema)}
    fields = schema.fields if groups else tuple(field for field in schema.fields if field.name in kept)
    options = {key: value for key, value in schema.options.items() if key != "deletion-vectors.enabled"}
    return replace(schema, fields=fields, options=MappingProxyType(options))
