"""Documents of a table and the commits that its last audits judged -> whose each version is. Pure; knows no HTML.

We are those who published a version by a document. Of others, each run names those who committed since the run before,
by what their commits state: another manager of the table where a commit states to keep the rows, and a writer else.
Documents of earlier releases name nobody: there the audits may know, and without audits they are only others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from nightkeep.records.audit_marks import AuditedCommit
from nightkeep.records.document import RunDocument
from nightkeep.records.found_versions import US, VersionSpan

_NAMED: Final = 3
"""How many commits between two runs a sentence names. The table of versions has all."""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version of a table: who made it, by what kind of commit, and when, in UTC."""

    version: int
    whose: str
    kind: str
    author: str
    made_at: str


def version_rows(documents: Sequence[RunDocument], commits: Sequence[AuditedCommit]) -> list[VersionRow]:
    """The versions that audits judged, the newest first."""
    ours = _published(documents)
    return [
        VersionRow(each.version, _whose(each, ours), each.kind, each.author, made_at(each.time_ms))
        for each in reversed(commits)
    ]


@dataclass(frozen=True, slots=True)
class FoundRow:
    """Versions in a row by one author: their numbers, and when the newest was made, in UTC, if it states that."""

    versions: str
    count: int
    whose: str
    kind: str
    author: str
    made_at: str | None


def found_rows(documents: Sequence[RunDocument], document: RunDocument) -> list[FoundRow]:
    """What others committed between this run and the one before, newest first, as this run names it. Our own versions
    have a row of their own where `documents`, those of the table, have published them."""
    if document.found_versions is None:
        return []
    ours = _published(documents)
    return [
        FoundRow(
            _numbers(each), each.count, each.whose, each.kind, each.author,
            None if each.time_ms is None else made_at(each.time_ms),
        )
        for each in document.found_versions.spans
        if each.whose != US or each.newest not in ours
    ]  # fmt: skip


def _numbers(span: VersionSpan) -> str:
    return str(span.newest) if span.count == 1 else f"{span.oldest} to {span.newest}"


def commits_between(documents: Sequence[RunDocument], document: RunDocument, commits: Sequence[AuditedCommit]) -> str:
    """A sentence on the versions of others that a run found on top of our last one; empty where there are none, and
    where the run names them itself.

    Documents are those of one table, oldest first."""
    earlier = [
        each.committed_version
        for each in documents
        if each.started_at < document.started_at and each.committed_version is not None
    ]
    if not earlier or document.base_version is None or document.base_version == earlier[-1]:
        return ""
    if document.found_versions is not None and document.found_versions.spans:
        return ""
    found = f"others committed in between: version {earlier[-1]} was ours, this run found {document.base_version}"
    named = [*_named(documents, commits, after=earlier[-1], until=document.base_version)]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"{found}; {', '.join(named[:_NAMED])}{more}" if named else found


def _named(
    documents: Sequence[RunDocument], commits: Sequence[AuditedCommit], *, after: int, until: int
) -> Iterator[str]:
    """The commits between two versions, oldest first; none unless audits judged both. Versions of Iceberg have no
    order, but for that of the commits."""
    versions = [each.version for each in commits]
    if after not in versions or until not in versions:
        return
    ours = _published(documents)
    for each in commits[versions.index(after) + 1 : versions.index(until) + 1]:
        if each.version not in ours:
            yield f"version {each.version} by {_whose(each, ours)} ({each.kind}, {each.author})"


def _published(documents: Sequence[RunDocument]) -> frozenset[int]:
    named = [commit.version for document in documents for commit in document.commits]
    named += [each.committed_version for each in documents if each.committed_version is not None]
    return frozenset(named)


def _whose(commit: AuditedCommit, ours: frozenset[int]) -> str:
    if commit.version in ours:
        return "us"
    return "another manager" if commit.keeps_rows else "others" if commit.keeps_rows is None else "a writer"


def made_at(time_ms: int | None) -> str:
    """A time in milliseconds since 1970, in UTC, to the minute. Commits may state any."""
    if time_ms is None:
        return "unknown"
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "unknown"
