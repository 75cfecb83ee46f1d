"""Storage -> what keeps a table's files alive: snapshots, tags and long-lived changelogs of every branch.

As C/operation/OrphanFilesClean.safelyGetAllSnapshots, which skips what it cannot find. Here nothing in the listing is
skipped: an unreadable root ends the sweep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.metadata.locations import MAIN, BranchFolders, branch_schemas, branches, layout
from nightkeep.formats.paimon.metadata.snapshot_files import hinted, numbered, parse_snapshot
from nightkeep.formats.paimon.retention.evidence import BASE, CHANGELOG, DELTA, INDEX, StatedList
from nightkeep.protocol.table_files import Root
from nightkeep.storage import Storage

_TRIES: Final = 3


class Kept(Enum):
    """The kind of a root. Tags and changelogs are copies of snapshots that outlive them."""

    SNAPSHOT = "snapshot"
    TAG = "tag"
    CHANGELOG = "changelog"


@dataclass(frozen=True, slots=True)
class IndexCompaction:
    """A compaction of a table without keys: the index manifest before it, and its delta list.

    It removes the vectors of files that it rewrites. It adds none: only compactions of tables with keys do.
    """

    before: str
    delta: str


@dataclass(frozen=True, slots=True)
class RootMetadata:
    """The JSON of one root, stored as `name`, and the folders of its branch.

    A chain is a run of a branch's snapshots without a gap in ids, each of which changes its parent only by its delta
    list. A tag or changelog is a chain of its own. `newest`: base and delta list of the chain's newest version.
    `later`: delta lists of the chain's later versions, oldest first. `following`: base list of the next snapshot in the
    chain. `no_vectors`: a version without rows has the same index manifest. `indexed`: name of the parent, if it has an
    index manifest, which is `index_before`. `compaction`: what wrote the index manifest, if it added no vectors.
    `lists`: the lists of all roots, of main's newest snapshot only.
    """

    kind: Kept
    branch: str
    name: str
    raw: Mapping[str, object]
    layout: BranchFolders
    newest: tuple[StatedList, StatedList]
    later: Sequence[StatedList] = ()
    following: str | None = None
    no_vectors: bool = False
    indexed: str | None = None
    index_before: str | None = None
    compaction: IndexCompaction | None = None
    lists: tuple[str, ...] = ()

    @property
    def id(self) -> int:
        return int(str(self.raw["id"]))

    @property
    def committed_ms(self) -> int:
        return int(str(self.raw["timeMillis"]))


@dataclass(frozen=True, slots=True)
class _Read:
    name: str
    raw: Mapping[str, object]
    digest: str

    @property
    def lists(self) -> tuple[StatedList, StatedList]:
        return StatedList.of(self.raw, BASE), StatedList.of(self.raw, DELTA)

    def number(self, key: str) -> int | None:
        value = self.raw.get(key)
        return value if type(value) is int else None


def roots(storage: Storage) -> tuple[Root[RootMetadata], ...]:
    """All roots now, by branch, main first: snapshots oldest first, then tags, then changelogs.

    An id is the file's name and a digest of its content, because tags may move and a rollback may reuse numbers. Raises
    MissingFile if the main branch has no snapshot, if a branch has no schema, or if versions keep disappearing.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            return _with_lists([root for branch in branches(storage) for root in _branch(storage, branch)])
        except MissingFile:
            # A version that expired since the listing is no longer a root: look again. A file that a branch needs stays
            # missing.
            if attempt == _TRIES:
                raise
    raise AssertionError


def _with_lists(found: Sequence[Root[RootMetadata]]) -> tuple[Root[RootMetadata], ...]:
    raws = [root.task.raw for root in found]
    lists = tuple(dict.fromkeys(str(raw[key]) for raw in raws for key in (BASE, DELTA, CHANGELOG) if raw.get(key)))
    newest = max((root for root in found if root.version is not None), key=lambda root: root.task.id, default=None)
    return tuple(replace(root, task=replace(root.task, lists=lists)) if root is newest else root for root in found)


def _branch(storage: Storage, branch: str) -> Iterator[Root[RootMetadata]]:
    schemas = branch_schemas(storage, branch)
    where = layout(schemas[-1], subject=f"{storage.root}/{branch}".rstrip("/"))
    reads = [_read(storage, name) for name in _snapshot_names(storage, branch)]
    keyed = any(schema.primary_keys for schema in schemas)
    compactions = {} if keyed else dict(_compactions(reads))
    yield from _snapshots(reads, branch, where, compactions)
    for kind in (Kept.TAG, Kept.CHANGELOG):
        for name in _names(storage, branch, kind):
            read = _read(storage, name)
            bare, compaction = read.raw["totalRecordCount"] == 0, compactions.get(read.raw.get(INDEX))
            version = RootMetadata(
                kind, branch, name, read.raw, where, read.lists, no_vectors=bare, compaction=compaction
            )
            yield _root(read, version)


def _snapshots(
    reads: Sequence[_Read], branch: str, where: BranchFolders, compactions: Mapping[object, IndexCompaction]
) -> Iterator[Root[RootMetadata]]:
    bare = {read.raw.get(INDEX) for read in reads if read.raw["totalRecordCount"] == 0}
    for chain in _chains(reads):
        deltas = tuple(read.lists[1] for read in chain)
        for place, (before, read) in enumerate(zip([None, *chain], chain, strict=False), start=1):
            later = deltas[place:]
            following = chain[place].lists[0].name if later else None
            parent = before.raw.get(INDEX) if before is not None else None
            version = RootMetadata(
                Kept.SNAPSHOT,
                branch,
                read.name,
                read.raw,
                where,
                chain[-1].lists,
                later,
                following,
                no_vectors=read.raw.get(INDEX) in bare,
                indexed=before.name if before is not None and parent is not None else None,
                index_before=None if parent is None else str(parent),
                compaction=compactions.get(read.raw.get(INDEX)),
            )
            yield _root(read, version, version.id if branch == MAIN else None)


def _compactions(reads: Sequence[_Read]) -> Iterator[tuple[object, IndexCompaction]]:
    """Index manifests that compactions wrote, where the version before has another one."""
    for before, read in pairwise(reads):
        parent, written = before.raw.get(INDEX), read.raw.get(INDEX)
        compacted = read.raw["commitKind"] == "COMPACT" and _follows(before, read)
        if compacted and None not in (parent, written) and parent != written:
            yield written, IndexCompaction(str(parent), read.lists[1].name)


def _chains(reads: Sequence[_Read]) -> Iterator[list[_Read]]:
    chain: list[_Read] = []
    for read in reads:
        if chain and not _follows(chain[-1], read):
            yield chain
            chain = []
        chain.append(read)
    if chain:
        yield chain


def _follows(before: _Read, read: _Read) -> bool:
    """Whether `read` changes its parent only by its delta list, judged by row counts (A/Snapshot.java)."""
    total, delta, base = (
        read.number("totalRecordCount"),
        read.number("deltaRecordCount"),
        before.number("totalRecordCount"),
    )
    if total is None or delta is None or base is None:
        return False
    return read.raw["id"] == int(str(before.raw["id"])) + 1 and total - delta == base


def _snapshot_names(storage: Storage, branch: str) -> list[str]:
    """Names of snapshots in order of id. Raises MissingFile if the newest is older than LATEST.

    The hint is written after its snapshot and read before the listing, so it may be old but never too new.
    """
    hint = hinted(storage, f"{branch}snapshot/LATEST")
    numbers = ((numbered(stored.name, "snapshot-"), stored.name) for stored in storage.list(f"{branch}snapshot"))
    names_by_id = {number: name for number, name in numbers if number is not None}
    least = int(branch == MAIN) if hint is None else hint
    if max(names_by_id, default=0) < least:
        subject = f"{storage.root}/{branch}snapshot"
        raise MissingFile(subject, f"snapshot-{least} or a newer one", f"up to snapshot-{max(names_by_id, default=0)}")
    return [names_by_id[number] for number in sorted(names_by_id)]


def _names(storage: Storage, branch: str, kind: Kept) -> list[str]:
    names = [stored.name for stored in storage.list(f"{branch}{kind.value}")]
    if kind is Kept.TAG:
        return [name for name in names if name.startswith(f"{branch}tag/tag-")]
    return [name for name in names if numbered(name, "changelog-") is not None]


def _read(storage: Storage, name: str) -> _Read:
    data = storage.read(name)
    raw = parse_snapshot(data, subject=f"{storage.root}/{name}")
    stated = numbered(name, "snapshot-")
    if stated not in (None, raw["id"]):
        raise CorruptMetadata(f"{storage.root}/{name}", "its own id", str(raw["id"]))
    return _Read(name, raw, hashlib.sha256(data).hexdigest()[:32])


def _root(read: _Read, version: RootMetadata, number: int | None = None) -> Root[RootMetadata]:
    return Root(f"{read.name} {read.digest}", version, number)
