"""Roots -> the files that they keep alive, from manifest lists, manifests and index manifests.

A snapshot keeps the files that its readers open: those with an ADD and no later DELETE. Reading all manifests for each
snapshot would be too slow for a long history. So a chain of snapshots is read as its newest snapshot, merged, and the
files that each later commit removed. Those were live directly before it, so together they are the files that any
snapshot of the chain needs. Row counts must match those in snapshots (evidence.py).

Unlike C/operation/OrphanFilesClean, which keeps every file that an entry names, this does not keep files that all
versions have removed. C/table/ExpireSnapshotsImpl would delete them with the versions that needed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import polars as pl
import pyarrow as pa

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.entries import decoding
from nightkeep.formats.paimon.metadata.locations import BranchFolders, inside, refused_outside
from nightkeep.formats.paimon.retention.evidence import (
    BASE,
    CHANGELOG,
    DELTA,
    INDEX,
    Read,
    StatedList,
    lost_index,
    read_index_manifest,
    read_named_list,
    require_changelog,
    require_known,
    require_once,
    require_successor,
)
from nightkeep.formats.paimon.retention.manifest_evidence import (
    removes_every_vector,
    require_own_bytes,
    require_vectors,
)
from nightkeep.formats.paimon.retention.merged_entries import merged_entries
from nightkeep.formats.paimon.retention.roots import Kept, RootMetadata
from nightkeep.protocol.table_files import FILES, Reach, Root, Unproven, files_table
from nightkeep.storage import Storage

_BATCH: Final = 50_000
_READ_BY_READERS: Final = ".index"
"""Suffix of the files beside a data file that readers open. Others are only for writers, and may come and go."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The files that a reader of one snapshot opens: the entries of its base and delta list, merged."""

    lists: tuple[StatedList, StatedList]
    layout: BranchFolders


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """The files that one commit removed. They were live before it."""

    delta: StatedList
    layout: BranchFolders


@dataclass(frozen=True, slots=True)
class Added:
    """The files that the entries of a changelog's list add.

    `appended`: the list is a delta list used as a changelog. Its files from compactions are left out, because changelog
    readers do not open them.
    """

    list: StatedList
    layout: BranchFolders
    appended: bool = False


@dataclass(frozen=True, slots=True)
class ComparedManifests:
    """Lists whose manifests are compared with each other. They keep no further file alive."""

    lists: tuple[str, ...]


Source = Merged | RemovedFiles | Added | ComparedManifests


def reach(storage: Storage, root: Root[RootMetadata]) -> Reach[Source]:
    """The metadata files, index files and statistics of one root. Its data files are in its sources.

    Raises MissingFile for a missing list, because the files that it named are unknown.
    """
    version = root.task
    require_known(version.raw, subject=version.name)
    require_changelog(version.raw, subject=version.name)
    if version.kind is Kept.CHANGELOG:
        return _changelog(storage, version)
    files = _Found()
    lists = [_of_list(storage, version, key, files) for key in (BASE, DELTA)]
    require_once((meta for read in lists for meta in read.records), subject=version.name)
    if version.following is not None and any(read.unproven for read in files.read):
        require_successor(storage, lists, version.following)
    changelog = _has_changelog(storage, version)
    if changelog:
        _of_list(storage, version, CHANGELOG, files)
    _of_index(storage, version, files)
    if (statistics := version.raw.get("statistics")) is not None:
        files.add(f"statistics/{statistics}")
    where = version.layout
    sources: list[Source] = [Merged(version.newest, where), *(RemovedFiles(delta, where) for delta in version.later)]
    if changelog:
        sources.append(Added(StatedList.of(version.raw, CHANGELOG), where))
    if version.lists:
        sources.append(ComparedManifests(version.lists))
    return files.reach(*sources)


def live(storage: Storage, source: Source) -> Iterator[pa.RecordBatch]:
    """Batches of schema FILES of one source.

    Raises MissingFile for a missing list or manifest, CorruptMetadata for entries that contradict each other,
    RefusedTable for files outside the table's folder.
    """
    match source:
        case Merged():
            merged = merged_entries(storage, source.lists, source.layout)
            wrong = merged.filter(~pl.col("adds").is_in([0, 1]))
            if len(wrong):
                name, adds = wrong.select("name", "adds").row(0)
                raise CorruptMetadata(f"entries of {name}", "one that adds it, before one that removes it", f"{adds:+}")
            yield from _files(merged.filter(pl.col("adds") == 1))
        case RemovedFiles():
            yield from _files(merged_entries(storage, (source.delta,), source.layout).filter(pl.col("adds") < 0))
        case Added():
            merged = merged_entries(storage, (source.list,), source.layout, changelog=True, appended=source.appended)
            yield from _files(merged.filter(pl.col("adds") > 0))
        case ComparedManifests():
            require_own_bytes(storage, source.lists)


class _Found:
    """Collected rows of schema FILES, and the metadata files that name them."""

    def __init__(self) -> None:
        self.read: list[Read] = []
        self.unproven: list[Unproven] = []
        self._needed: dict[str, int | None] = {}
        self._kept: dict[str, None] = {}

    def add(self, name: str, size: object = None) -> None:
        self._needed[name] = size if isinstance(size, int) else self._needed.get(name)

    def keep(self, name: str) -> None:
        self._kept[name] = None

    def reach(self, *sources: Source) -> Reach[Source]:
        needed = files_table(list(self._needed), sizes=list(self._needed.values()))
        files = pa.concat_tables([needed, files_table(list(self._kept), needed=False)])
        unproven = (*(read.unproven for read in self.read if read.unproven is not None), *self.unproven)
        return Reach(files, sources, unproven, tuple((read.name, read.digest) for read in self.read))


def _of_list(storage: Storage, version: RootMetadata, key: str, files: _Found) -> Read:
    read = read_named_list(storage, version.raw, key)
    files.read.append(read)
    files.add(read.name, version.raw.get(f"{key}Size"))
    with decoding(read.name, "names and sizes of manifests"):
        require_once(read.records, subject=read.name)
        for meta in read.records:
            files.add(f"manifest/{meta['_FILE_NAME']}", meta["_FILE_SIZE"])
            for extra in meta.get("_EXTRA_FILES") or ():
                files.keep(f"manifest/{extra}")
    return read


def _of_index(storage: Storage, version: RootMetadata, files: _Found) -> None:
    read = read_index_manifest(storage, version.raw, may_be_empty=version.no_vectors)
    if read is None:
        if version.indexed is not None:
            files.unproven.append(lost_index(version.name, version.indexed))
        return
    files.read.append(replace(read, unproven=None) if _is_emptied(storage, version, read) else read)
    files.add(read.name)
    with decoding(read.name, "entries of index files"):
        for record in read.records:
            files.add(f"{version.layout.index_folder(record)}/{inside(record)}", record["_FILE_SIZE"])
        own = [str(version.raw[key]) for key in (BASE, DELTA)]
        require_vectors(storage, version.index_before, read.records, own, read.name)


def _is_emptied(storage: Storage, version: RootMetadata, read: Read) -> bool:
    """Whether an index manifest has no entries because a compaction removed every file with a vector."""
    if read.records or version.compaction is None:
        return False
    before = read_index_manifest(storage, {INDEX: version.compaction.before}, may_be_empty=False)
    if before is None or before.unproven is not None:
        return False
    with decoding(before.name, "entries of index files"):
        return removes_every_vector(storage, before.records, version.compaction.delta)


def _has_changelog(storage: Storage, version: RootMetadata) -> bool:
    """Whether to read the version's changelog.

    Expiry removes the changelog of a snapshot whose tags, and branches made of them, stay
    (C/table/ExpireSnapshotsImpl.collectChangelogFilesToDelete).
    """
    name = version.raw.get("changelogManifestList")
    if name is None:
        return False
    copied = version.kind is Kept.TAG or bool(version.branch)
    return not copied or storage.exists(f"manifest/{name}")


def _changelog(storage: Storage, version: RootMetadata) -> Reach[Source]:
    """A long-lived changelog's files: of its own list, or those its commit appended (C/operation/ChangelogDeletion).

    Other files of its snapshot were removed with the snapshot, unless another version needs them.
    """
    files, where = _Found(), version.layout
    if version.raw.get(CHANGELOG) is not None:
        _of_list(storage, version, CHANGELOG, files)
        return files.reach(Added(StatedList.of(version.raw, CHANGELOG), where))
    base, delta = version.newest
    if storage.exists(f"manifest/{base.name}"):
        _of_list(storage, version, BASE, files)
    appended = version.raw["commitKind"] == "APPEND" and not where.writes_changelogs
    if not appended and not storage.exists(f"manifest/{delta.name}"):
        # This commit has no changes to show, where other commits have their own list: SnapshotDeletion removed both.
        return files.reach()
    _of_list(storage, version, DELTA, files)
    return files.reach(Added(delta, where, appended=True))


def _files(merged: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """Batches of schema FILES of the merged entries, and of the files beside each data file.

    Raises RefusedTable for files outside the table's folder. Those that are gone again are of no account.
    """
    for name in merged.filter("outside")["name"]:
        raise refused_outside(name)
    beside = merged.select(pl.col("extra").explode().alias("name")).drop_nulls()
    for part in (
        merged.select("name", "bytes", pl.lit(value=True).alias("needed")),
        beside.select(
            "name",
            pl.lit(None, pl.Int64).alias("bytes"),
            pl.col("name").str.ends_with(_READ_BY_READERS).alias("needed"),
        ),
    ):
        yield from part.to_arrow().cast(FILES).to_batches(max_chunksize=_BATCH)
