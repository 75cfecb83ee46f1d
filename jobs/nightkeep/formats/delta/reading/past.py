"""The log -> the commits of all writers, and what each states of the rows: `dataChange` of its file actions.

PROTOCOL.md, "Add File and Remove File": with `dataChange` false, a commit must not change the rows of the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.metadata.actions import Raw, parse_lines
from nightkeep.formats.delta.metadata.log_segment import Listing, listing
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.reading import added_files
from nightkeep.formats.delta.reading.commit_faults import LoggedCommit, LogReplay, rows_of
from nightkeep.formats.delta.reading.row_metrics import row_faults
from nightkeep.formats.delta.reading.stated_totals import VersionTotals, metric_faults, total_faults, totals_in
from nightkeep.model import Address, digest_of
from nightkeep.protocol import Bound
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim
from nightkeep.storage import ListedFile, Storage


def past_of(address: Address, storage: Storage) -> PastReading[DeltaSnapshot, DeltaUnit]:
    return PastReading(
        read=Bound(read_past, storage),
        files=files,
        apart=apart,
        is_expired=Bound(Bound(added_files.is_expired, address), storage),
        file_faults=Bound(Bound(added_files.file_faults, address), storage),
    )


def files(unit: DeltaUnit) -> Mapping[Hashable, int]:
    return {file.identity: file.bytes for file in unit.files}


def apart(before: DeltaUnit, after: DeltaUnit) -> tuple[DeltaUnit, DeltaUnit]:
    kept = files(before).keys() & files(after).keys()
    old, new = (tuple(file for file in unit.files if file.identity not in kept) for unit in (before, after))
    return replace(before, files=old), replace(after, files=new)


def read_past(storage: Storage, *, since: int | None, since_ms: int | None) -> Past:
    """As `protocol.past.ReadsPast`. A commit that the log removes while it is read counts as one that is gone."""
    log = listing(storage)
    found: list[_Read] = []
    lost: int | None = None
    for version, file in reversed(log.commits):
        if found and since is not None and version <= since:
            break
        try:
            read = _read(storage, version, file, has_checksum=version in log.checksums)
        except MissingFile:
            lost = version
            break
        # A commit may state any time. The store's own is that of the listing.
        if found and since_ms is not None and max(read.time_ms, file.modified_ms) < since_ms:
            break
        found.append(read)
    found.reverse()
    commits = tuple(_stated(found, log))
    return Past(commits=commits, cut=_cut(commits, log, lost, since=since, since_ms=since_ms))


@dataclass(frozen=True, slots=True)
class _Read:
    """A commit with its checksum file, None without one; or why that cannot be read."""

    commit: LoggedCommit
    digest: str
    time_ms: int
    totals: VersionTotals | None
    unread: tuple[str, ...] = ()


def _read(storage: Storage, version: int, file: ListedFile, *, has_checksum: bool) -> _Read:
    data = storage.read(file.name)
    actions = tuple(parse_lines(data, subject=file.name))
    info = next((body for kind, body in actions if kind == "commitInfo"), {})
    stated = info.get("inCommitTimestamp", info.get("timestamp"))
    time_ms = stated if isinstance(stated, int) else file.modified_ms
    totals, unread = _totals(storage, version) if has_checksum else (None, ())
    return _Read(LoggedCommit(version, info, actions), digest_of(data), time_ms, totals, unread)


def _totals(storage: Storage, version: int) -> tuple[VersionTotals | None, tuple[str, ...]]:
    name = f"{LOG}/{version:020d}.crc"
    try:
        return totals_in(storage.read(name), subject=name), ()
    except (MissingFile, RefusedTable):
        # The log is cleaned up meanwhile, or the file is too large: it may list all files.
        return None, ()
    except (CorruptMetadata, UnicodeDecodeError) as failure:
        return None, (f"{name} cannot be read: {failure}",)


def _cut(
    commits: Sequence[PastCommit], log: Listing, lost: int | None, *, since: int | None, since_ms: int | None
) -> str | None:
    if not commits:
        return f"the log has no commit any more, only a checkpoint of version {log.newest}"
    oldest = commits[0].version
    if since is not None and oldest > since + 1:
        return f"the log has no commits of versions {since + 1} to {oldest - 1} any more"
    has_all = since_ms is None or commits[0].time_ms < since_ms
    is_end = lost is not None or oldest == log.commits[0][0]
    if since is None and not has_all and is_end and oldest > 0:
        return f"the log begins with version {oldest}"
    return None


def _stated(found: Sequence[_Read], log: Listing) -> Iterator[PastCommit]:
    """The commits with what contradicts in each, and in one after the other."""
    replay, before, time_ms, totals = LogReplay(), None, 0, None
    for read in found:
        commit, info = read.commit, read.commit.info
        # As delta-spark reads them: no commit is older than the one before (DeltaHistoryManager.scala).
        time_ms = max(time_ms, read.time_ms)
        gap: tuple[str, ...] = ()
        if before is not None and commit.version > before + 1:
            replay, gap, totals = LogReplay(), tuple(_gap(before, commit.version, log)), None
        before = commit.version
        stated = () if read.totals is None else total_faults(commit, read.totals, totals)
        totals = read.totals
        files = [*commit.of("add"), *commit.of("remove")]
        counted = tuple(row_faults(commit, replay.live))
        yield PastCommit(
            version=commit.version,
            parent=commit.version - 1 if commit.version else None,
            digest=read.digest,
            claim=claim_of(files),
            kind=kind_of(info),
            author=author_of(info),
            time_ms=time_ms,
            rows=_rows(commit),
            bytes_added=_bytes_added(commit),
            faults=(*gap, *counted, *replay.take(commit), *metric_faults(commit), *stated, *read.unread),
            goes_back=info.get("operation") == "RESTORE",
        )


def kind_of(info: Raw) -> str:
    return str(info.get("operation") or "commit")


def author_of(info: Raw) -> str:
    return str(info.get("engineInfo") or "an unnamed writer")


def _bytes_added(commit: LoggedCommit) -> int:
    """Of new files: one that is added with other deletes is removed by the same commit."""
    known = {each.get("path") for each in commit.of("remove")}
    sizes = (each.get("size") for each in commit.of("add") if each.get("path") not in known)
    return sum(size for size in sizes if isinstance(size, int))


def _gap(before: int, version: int, log: Listing) -> Iterator[str]:
    """A clean-up of the log may be under way, where a checkpoint has the versions that it removes."""
    if log.checkpoint is None or log.checkpoint < version - 1:
        gone = f"version {version - 1}" if version == before + 2 else f"versions {before + 1} to {version - 1}"
        yield f"the log has no commit of {gone}, and no checkpoint that stands for it"


def claim_of(files: Sequence[Raw]) -> RowClaim:
    """What a commit states of the rows, by its `add` and `remove` actions."""
    if not files:
        return RowClaim.TOUCHES_NO_FILES
    return RowClaim.CHANGES_ROWS if any(each.get("dataChange") is not False for each in files) else RowClaim.KEEPS_ROWS


def _rows(commit: LoggedCommit) -> int | None:
    """The rows of the added files, where nothing is removed: a remove need not state its rows."""
    adds = commit.of("add")
    counts = [count for each in adds if (count := rows_of(each)) is not None]
    return None if commit.of("remove") or len(counts) < len(adds) else sum(counts)
