"""The log -> the commits of all writers, and what each states of the rows: `dataChange` of its file actions.

PROTOCOL.md, "Add File and Remove File": with `dataChange` false, a commit must not change the rows of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.metadata.actions import Raw, parse_lines, vector_id
from nightkeep.formats.delta.metadata.log_segment import Listing, listing
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.metadata.struct_stats import row_count
from nightkeep.model import digest_of
from nightkeep.protocol import Bound
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim
from nightkeep.storage import ListedFile, Storage

_File = tuple[str, str | None]
"""The path of a data file, and its vector."""


def past_of(storage: Storage) -> PastReading[DeltaSnapshot, DeltaUnit]:
    return PastReading(read=Bound(read_past, storage), files=files, apart=apart)


def files(unit: DeltaUnit) -> Mapping[Hashable, int]:
    return {file.identity: file.bytes for file in unit.files}


def apart(before: DeltaUnit, after: DeltaUnit) -> tuple[DeltaUnit, DeltaUnit]:
    kept = files(before).keys() & files(after).keys()
    old, new = (tuple(file for file in unit.files if file.identity not in kept) for unit in (before, after))
    return replace(before, files=old), replace(after, files=new)


def read_past(storage: Storage, *, since: int | None, since_ms: int | None) -> Past:
    """As `protocol.past.ReadsPast`. A commit that the log removes while it is read counts as one that is gone."""
    log = listing(storage)
    found: list[_Commit] = []
    for version, file in reversed(log.commits):
        if found and since is not None and version <= since:
            break
        try:
            read = _read(storage, version, file)
        except MissingFile:
            break
        if found and since_ms is not None and read.time_ms < since_ms:
            break
        found.append(read)
    found.reverse()
    commits = tuple(_stated(found))
    return Past(commits=commits, cut=_cut(commits, log, since=since, since_ms=since_ms))


@dataclass(frozen=True, slots=True)
class _Commit:
    version: int
    digest: str
    time_ms: int
    info: Raw
    adds: Sequence[Raw]
    removes: Sequence[Raw]


def _read(storage: Storage, version: int, file: ListedFile) -> _Commit:
    data = storage.read(file.name)
    actions = list(parse_lines(data, subject=file.name))
    info = next((body for kind, body in actions if kind == "commitInfo"), {})
    adds, removes = ([body for kind, body in actions if kind == wanted] for wanted in ("add", "remove"))
    stated = info.get("inCommitTimestamp", info.get("timestamp"))
    time_ms = stated if isinstance(stated, int) else file.modified_ms
    return _Commit(version, digest_of(data), time_ms, info, adds, removes)


def _cut(commits: Sequence[PastCommit], log: Listing, *, since: int | None, since_ms: int | None) -> str | None:
    if not commits:
        return f"the log has no commit any more, only a checkpoint of version {log.newest}"
    oldest = commits[0].version
    if since is not None and oldest > since + 1:
        return f"the log has no commits of versions {since + 1} to {oldest - 1} any more"
    has_all = since_ms is None or commits[0].time_ms < since_ms
    if since is None and not has_all and oldest == log.commits[0][0] and oldest > 0:
        return f"the log begins with version {oldest}"
    return None


def _stated(commits: Sequence[_Commit]) -> Iterator[PastCommit]:
    """The commits with what contradicts in each, and in one after the other."""
    gone: dict[_File, int] = {}
    for commit in commits:
        added, removed = (Counter(map(_file, files)) for files in (commit.adds, commit.removes))
        again = [file for file in removed if file in gone]
        gone_before, gone = gone, {file: version for file, version in gone.items() if file not in added}
        gone |= {file: commit.version for file in removed if file not in added}
        yield PastCommit(
            version=commit.version,
            parent=commit.version - 1 if commit.version else None,
            digest=commit.digest,
            claim=_claim([*commit.adds, *commit.removes]),
            kind=str(commit.info.get("operation") or "commit"),
            author=str(commit.info.get("engineInfo") or "an unnamed writer"),
            time_ms=commit.time_ms,
            rows=_rows(commit.adds, commit.removes),
            faults=(
                *(f"it adds {file[0]} {count} times" for file, count in added.items() if count > 1),
                *(f"it removes {file[0]} {count} times" for file, count in removed.items() if count > 1),
                *_again(again, gone_before),
                *_hidden(commit.adds),
            ),
            goes_back=commit.info.get("operation") == "RESTORE",
        )


def _file(action: Raw) -> _File:
    """A file with another vector is another logical file (PROTOCOL.md, "Action Reconciliation")."""
    return str(action["path"]), vector_id(action)


def _claim(files: Sequence[Raw]) -> RowClaim:
    if not files:
        return RowClaim.TOUCHES_NO_FILES
    return RowClaim.CHANGES_ROWS if any(each.get("dataChange") is not False for each in files) else RowClaim.KEEPS_ROWS


def _rows(adds: Sequence[Raw], removes: Sequence[Raw]) -> int | None:
    """The rows of the added files, where nothing is removed: a remove need not state its rows."""
    counts = [count for each in adds if (count := _count(each)) is not None]
    return None if removes or len(counts) < len(adds) else sum(counts)


def _count(add: Raw) -> int | None:
    stats = add.get("stats")
    return row_count(stats) if isinstance(stats, str) else None


def _again(files: Sequence[_File], gone: Mapping[_File, int]) -> Iterator[str]:
    if files:
        what = files[0][0] if len(files) == 1 else f"{len(files)} files, such as {files[0][0]}"
        yield f"it removes {what}, which version {gone[files[0]]} has removed"


def _hidden(adds: Sequence[Raw]) -> Iterator[str]:
    for each in adds:
        vector, rows = each.get("deletionVector"), _count(each)
        hidden = vector.get("cardinality") if isinstance(vector, dict) else None
        if rows is not None and isinstance(hidden, int) and hidden > rows:
            yield f"the vector of {each['path']} hides {hidden} rows, and the file has {rows}"
