"""Table metadata -> roots, its current version and every snapshot -> the files that each of them needs.

Manifests are read for paths and sizes only, without a schema: features that we refuse elsewhere are no obstacle here.
Iceberg table spec, "Manifests", "Manifest Lists", "Table Metadata Fields".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import polars as pl
import pyarrow as pa

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.formats.iceberg.metadata.avro import Names, read_frame, read_records
from nightkeep.formats.iceberg.metadata.content_files import Manifest, Status
from nightkeep.formats.iceberg.metadata.features import manifest_list_of, refuse_manifests
from nightkeep.formats.iceberg.metadata.locations import name_in, root_of, stored_name
from nightkeep.formats.iceberg.metadata.manifest_list import parse_manifest_list
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, head, integer, objects, text
from nightkeep.formats.iceberg.retention.evidence import Totals, digest, require_owner, unproven, unproven_version
from nightkeep.protocol.table_files import FILES, Reach, Retention, Root, Unproven
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class Known:
    """Locations of metadata files: the current one, and others that readers do not need.

    `unproven` is what no other evidence confirms about the current one.
    """

    current: str
    others: tuple[str, ...]
    unproven: tuple[Unproven, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """A snapshot's manifest list, its statistics files, and the totals of its summary.

    `fresh`: the files that it removed are still protected.
    """

    table: str
    snapshot_id: int
    manifest_list: str
    statistics: tuple[str, ...]
    fresh: bool
    totals: Totals


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    """A manifest with its size, its counts of files by status and its count of live rows, all from the list.

    `added_by` is the snapshot that wrote it. `removed`: files that it lists as deleted are protected.
    """

    path: str
    name: str
    bytes: int
    added_by: int
    rows: int
    existing: int
    added: int
    deleted: int
    removed: bool


RootFiles = Known | SnapshotFiles


def roots(table: str, loaded: tuple[Raw, str], retention: Retention) -> tuple[Root[RootFiles], ...]:
    """The current metadata, then every snapshot in it, whether a branch or tag has it or not.

    The first root changes with every commit; the version of the others is the snapshot id. Files removed by a snapshot
    within the retention are protected, as queries may still read them. Raises CorruptMetadata, RefusedTable for a
    snapshot that has no manifest list or is encrypted.
    """
    raw, location = loaded
    others = [text(each, "metadata-file", subject=location) for each in objects(raw, "metadata-log", subject=location)]
    others += [path for snapshot_id, path in _statistics(raw, location) if snapshot_id not in retention.going]
    current = Root(
        f"metadata:{location}", Known(location, tuple(others), unproven_version(raw, location)), passing=True
    )
    since_ms = retention.now_ms - retention.older_than_ms
    return (current, *snapshot_roots(table, loaded, since_ms=since_ms))


def snapshot_roots(table: str, loaded: tuple[Raw, str], *, since_ms: int) -> tuple[Root[SnapshotFiles], ...]:
    """Every snapshot, in the order of the metadata. Files removed by snapshots since `since_ms` are still protected."""
    raw, location = loaded
    statistics: dict[int, list[str]] = {}
    for snapshot_id, path in _statistics(raw, location):
        statistics.setdefault(snapshot_id, []).append(path)
    kept = []
    for number, snapshot in head(raw, subject=location).snapshots.items():
        fresh = integer(snapshot, "timestamp-ms", subject=location) >= since_ms
        own = tuple(statistics.get(number, ()))
        task = SnapshotFiles(table, number, manifest_list_of(table, snapshot), own, fresh, Totals.of(snapshot))
        kept.append(Root(f"snapshot:{number}", task, number))
    return tuple(kept)


def reach(storage: Storage, root: Root[RootFiles]) -> Reach[ManifestFiles]:
    """The files that a root needs. Raises MissingFile, CorruptMetadata, RefusedTable for an encrypted manifest."""
    task = root.task
    if isinstance(task, Known):
        own = () if not task.current else (task.current,)
        named = _files([(_here(storage, each)[0], None, each in own) for each in (*own, *task.others)])
        return Reach(named, unproven=task.unproven)
    if not isinstance(task, SnapshotFiles):
        raise TypeError(f"{root.id}: expected a root of an Iceberg table, found {kind_of(task)}")
    data = storage.read(name_in(storage, task.manifest_list))
    manifests = parse_manifest_list(storage, task.manifest_list, data)
    refuse_manifests(task.table, manifests)
    require_owner(data, task.snapshot_id, subject=task.manifest_list)
    return Reach(
        _own_files(storage, task, manifests),
        tuple(_source(task, manifest) for manifest in manifests),
        unproven(manifests, task.totals, subject=task.manifest_list),
        ((task.manifest_list, digest(data)),),
    )


def live(storage: Storage, source: ManifestFiles) -> Iterator[pa.RecordBatch]:
    """Content files of a manifest: live files with their sizes, and removed files if they are protected.

    Raises MissingFile, and CorruptMetadata naming the manifest if it cannot be parsed or its counts are not those of
    the list: a file truncated between two blocks is valid Avro, and would protect fewer files.
    """
    if not isinstance(source, ManifestFiles):
        raise TypeError(f"expected a manifest of an Iceberg table, found {kind_of(source)}")
    data = storage.read(source.name)
    entries = _entries(data, source.path)
    statuses = Counter(entries["status"].to_list())
    counts = tuple(statuses[status] for status in (Status.EXISTING, Status.ADDED, Status.DELETED))
    if counts != (source.existing, source.added, source.deleted):
        expected = (
            f"{source.existing} existing, {source.added} added, {source.deleted} deleted files as its list counts"
        )
        raise CorruptMetadata(source.path, expected, "{}, {}, {}".format(*counts))
    live = pl.col("status") != Status.DELETED
    _require_own(entries, source)
    if len(data) != source.bytes:
        raise CorruptMetadata(source.path, f"{source.bytes} bytes, as its list states", f"{len(data)} bytes")
    size = pl.when(live).then("file_size_in_bytes")
    placed = _placed(storage, entries if source.removed else entries.filter(live))
    kept = placed.select("name", size.alias("bytes"), (live & pl.col("here")).alias("needed"))
    yield from kept.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(FILES).combine_chunks().to_batches()


def _require_own(entries: pl.DataFrame, source: ManifestFiles) -> None:
    """Raises CorruptMetadata if the entries are not those of this manifest: other rows, or another snapshot's."""
    rows = int(entries.filter(pl.col("status") != Status.DELETED)["record_count"].sum())
    if rows != source.rows:
        raise CorruptMetadata(source.path, f"{source.rows} live rows as its list counts", f"{rows}")
    added = entries.filter(pl.col("status") == Status.ADDED)["snapshot_id"].drop_nulls().unique().to_list()
    if added not in ([], [source.added_by]):
        expected = f"files that snapshot {source.added_by} added, as its list states"
        raise CorruptMetadata(source.path, expected, f"files of {', '.join(map(str, added[:3]))}")


def _entries(data: bytes, subject: str) -> pl.DataFrame:
    """A manifest's entries: status, snapshot, path, size and rows. Raises CorruptMetadata."""
    frame = read_frame(data, _NAMES, subject=subject)
    if frame is not None and frame.schema.get("status") == pl.Int32 and "data_file" in frame.columns:
        # On any fault, fall through to the reader that decodes each entry and names the fault.
        with suppress(pl.exceptions.PolarsError):
            snapshot = pl.col("snapshot_id") if "snapshot_id" in frame.columns else pl.lit(None).alias("snapshot_id")
            file = pl.col("data_file").struct.field("file_path", "file_size_in_bytes", "record_count")
            entries = frame.select("status", snapshot.cast(pl.Int64), file)
            if dict(entries.schema) == _ENTRIES and _sound(entries):
                return entries
    rows = [_entry(record, subject) for record in read_records(data, _NAMES, subject=subject)]
    return pl.DataFrame(rows, schema=_ENTRIES, orient="row")


_ENTRIES: Final = {
    "status": pl.Int32(),
    "snapshot_id": pl.Int64(),
    "file_path": pl.String(),
    "file_size_in_bytes": pl.Int64(),
    "record_count": pl.Int64(),
}


def _sound(entries: pl.DataFrame) -> bool:
    return not sum(entries.drop("snapshot_id").null_count().row(0)) and entries["status"].is_in([0, 1, 2]).all()


def _placed(storage: Storage, entries: pl.DataFrame) -> pl.DataFrame:
    """Entries with their `name` in `storage`, and `here`: whether they are in `storage`. See `_here`.

    Each folder is resolved once, not each file.
    """
    parts = pl.col("file_path").str.extract_groups(r"(?s)\A(?<folder>.*/)?(?<base>[^/]*)\z").struct
    split = entries.with_columns(parts.field("folder"), parts.field("base"))
    plain = (
        pl.col("folder").is_not_null()
        & ~pl.col("base").is_in(["", ".", ".."])
        & ~pl.col("base").str.contains("\0", literal=True)
    )
    for path in split.filter(~plain)["file_path"]:
        # Not a valid location of a file: this raises the error that states why.
        _here(storage, path)
    folders = split["folder"].unique().to_list()
    names = [(folder, name[:-1], here) for folder in folders for name, here in [_here(storage, f"{folder}x")]]
    resolved = pl.DataFrame(names, schema={"folder": pl.String, "prefix": pl.String, "here": pl.Boolean}, orient="row")
    return split.join(resolved, on="folder", maintain_order="left").with_columns(
        pl.concat_str("prefix", "base").alias("name")
    )


def _here(storage: Storage, location: str) -> tuple[str, bool]:
    """The name of a file, and whether it is in `storage`.

    A file in another bucket is named by its whole location, which no listing here contains. Buckets may have aliases,
    so the last part of the location is still compared.
    """
    name = stored_name(location)
    return (name, True) if root_of(location) == storage.root else (location, False)


_BY_ID: Final = {
    0: "status",
    1: "snapshot_id",
    2: "data_file",
    100: "file_path",
    103: "record_count",
    104: "file_size_in_bytes",
}
_NAMES: Final = Names(_BY_ID, {name: name for name in _BY_ID.values()})


def _entry(record: Record, subject: str) -> tuple[int, int | None, str, int, int]:
    status, file, added_by = record.get("status"), record.get("data_file"), record.get("snapshot_id")
    if type(status) is not int or status not in (0, 1, 2) or not isinstance(file, dict):
        raise CorruptMetadata(subject, "a status of 0, 1 or 2 and a data_file in every entry", kind_of(record))
    path, size, rows = (file.get(name) for name in ("file_path", "file_size_in_bytes", "record_count"))
    if not isinstance(path, str) or type(size) is not int or type(rows) is not int:
        expected = "a file_path, a file_size_in_bytes and a record_count in every entry"
        raise CorruptMetadata(subject, expected, kind_of(file))
    return status, added_by if type(added_by) is int else None, path, size, rows


def _own_files(storage: Storage, task: SnapshotFiles, manifests: Iterable[Manifest]) -> pa.Table:
    return _files(
        [
            (stored_name(task.manifest_list), None, True),
            *((stored_name(manifest.path), manifest.bytes, True) for manifest in manifests),
            # Readers do not need statistics: a table without them can still be swept.
            *((_here(storage, each)[0], None, False) for each in task.statistics),
        ]
    )


def _source(task: SnapshotFiles, manifest: Manifest) -> ManifestFiles:
    return ManifestFiles(
        path=manifest.path,
        name=manifest.name,
        bytes=manifest.bytes,
        added_by=manifest.snapshot_id,
        rows=manifest.added_rows + manifest.existing_rows,
        existing=manifest.existing_files,
        added=manifest.added_files,
        deleted=manifest.deleted_files,
        removed=task.fresh and manifest.snapshot_id == task.snapshot_id and manifest.deleted_files > 0,
    )


def _statistics(raw: Raw, subject: str) -> list[tuple[int, str]]:
    """Pairs of snapshot id and location of its statistics, Puffin files and partition statistics."""
    files = []
    for name in ("statistics", "partition-statistics"):
        for each in objects(raw, name, subject=subject):
            path = text(each, "statistics-path", subject=subject)
            files.append((integer(each, "snapshot-id", subject=subject), path))
    return files


def _files(rows: Iterable[tuple[str, int | None, bool]]) -> pa.Table:
    names, sizes, needed = zip(*pieces, strict=True) if (pieces := list(rows)) else ((), (), ())
    return pa.Table.from_arrays(
        [pa.array(names, pa.string()), pa.array(sizes, pa.int64()), pa.array(needed, pa.bool_())], schema=FILES
    )
