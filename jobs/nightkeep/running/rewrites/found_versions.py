"""A planned version -> who committed the versions since the last run of the table. One small file of reports is read;
of the table only commits that are new, and none where its version did not move."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from nightkeep.errors import NightkeepError
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.protocol.past import RowClaim
from nightkeep.protocol.version_writers import WrittenVersion
from nightkeep.records.found_versions import MOST_VERSIONS, US, FoundVersion, FoundVersions, spans_of
from nightkeep.records.version_marks import known_version

_LONGEST: Final = 100
"""Texts of commits are cut to so many characters: anybody may write them."""


def found_versions(table: OpenTable, base: Snapshot, reports: str) -> FoundVersions | None:
    """The versions up to `base` that no earlier run has named; None where there are none, for a format that does not
    provide them, and where they cannot be read: only pages show them, so this hinders no run."""
    if table.writers is None:
        return None
    since = known_version(reports, table.address.name)
    if since is None:
        return FoundVersions(since=None, until=base.version)
    if since == base.version:
        return None
    with suppress(NightkeepError, OSError, ValueError):
        found = table.writers(base, since=since, most=MOST_VERSIONS)
        named = tuple(map(_named, found.newest))
        total = len(named) + found.more
        return FoundVersions(since=since, until=base.version, total=total, spans=spans_of(named), versions=named)
    return None


def _named(each: WrittenVersion) -> FoundVersion:
    others = "another manager" if each.claim is RowClaim.KEEPS_ROWS else "a writer"
    return FoundVersion(
        version=each.version,
        whose=US if each.ours else others,
        kind=_cut(each.kind),
        author=_cut(each.author),
        application=None if each.application is None else _cut(each.application),
        time_ms=each.time_ms,
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."
