"""The versions that a run found on top of the one before it, each with who committed it, as a part of its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

MOST_VERSIONS: Final = 50
"""So many versions have their writers in a document, the newest. The others are counted."""
US: Final = "us"

Extra = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVersion:
    """A version and its commit, as its metadata states them. `whose`: us, another manager where it states to keep the
    rows, or a writer. `kind` is the format's own word. `application`: the job or the query, None where the
    commit names none. `time_ms`: in milliseconds since 1970, None if it states none."""

    version: int
    whose: str
    kind: str
    author: str
    application: str | None = None
    time_ms: int | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSpan:
    """So many versions in a row by one author, with commits of one kind. `time_ms` is of the newest."""

    oldest: int
    newest: int
    count: int
    whose: str
    kind: str
    author: str
    time_ms: int | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundVersions:
    """The versions after `since` up to `until`, newest first, and the same in spans. `total`: how many there are, or
    were before they expired. `since` is None where no earlier run is known: then none is named."""

    since: int | None
    until: int
    total: int = 0
    spans: tuple[VersionSpan, ...] = ()
    versions: tuple[FoundVersion, ...] = ()
    extra: Extra = field(default_factory=dict)

    @property
    def unnamed(self) -> int:
        """How many versions are in no span."""
        return max(0, self.total - sum(each.count for each in self.spans))


def spans_of(versions: Sequence[FoundVersion]) -> tuple[VersionSpan, ...]:
    """Versions, newest first, by author and kind. Applications are no part of that: each query may be one."""
    spans = []
    for (whose, kind, author), some in groupby(versions, key=lambda each: (each.whose, each.kind, each.author)):
        row = list(some)
        spans.append(
            VersionSpan(
                oldest=row[-1].version,
                newest=row[0].version,
                count=len(row),
                whose=whose,
                kind=kind,
                author=author,
                time_ms=row[0].time_ms,
            )
        )
    return tuple(spans)
