"""Commits of all writers since the last run -> what came in: a measure of the table's need that no clock has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from nightkeep.admission.past_metrics import DONE, REWRITES
from nightkeep.protocol import OpenTable
from nightkeep.protocol.past import RowClaim
from nightkeep.records import TableDocuments

SINCE_RUN: Final = frozenset({"commits_since_run", "bytes_since_run"})


def commits_since_run(
    table: OpenTable, documents: TableDocuments, *, asked: Collection[str]
) -> Mapping[str, int | float | None]:
    """`commits_since_run` that change rows, and the bytes of the files that they added, since the version that the last
    run published or left as it was; without such a run, of all commits that the table keeps. At least so many: what has
    expired since is not counted. Nothing where `asked` has neither name, as the metadata of these commits is read.

    Raises EvidenceError for metadata that cannot be read.
    """
    if not SINCE_RUN & {*asked} or table.past is None:
        return {}
    since = _version_left(documents)
    past = table.past.read(since=since, since_ms=0 if since is None else None)
    came = [each for each in past.commits if each.claim is RowClaim.CHANGES_ROWS and each.version != since]
    return {"commits_since_run": len(came), "bytes_since_run": sum(each.bytes_added for each in came)}


def _version_left(documents: TableDocuments) -> int | None:
    """The version that the last run left behind that did its work; None without one."""
    done = (each for each in documents.newest_first(*REWRITES) if each.outcome in DONE)
    versions = (each.base_version if each.committed_version is None else each.committed_version for each in done)
    return next((each for each in versions if each is not None), None)
