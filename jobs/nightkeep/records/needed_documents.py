"""Old documents of a table -> those that nothing needs any more. Pure.

A document is needed, however old it is,

- while a hold names its run, and while a hold of its table cannot be read;
- while its version waits for a check, or the table may have a commit that it does not name;
- while files that it moved to quarantine may still be there: until a sweep that purges has run after they were due;
- while it is the newest of its operation: of all, that did its work, that published, that listed orphan files. `--last`
  of commands, conditions of the policy, and names that a table had before are looked up in these.

In doubt it is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from nightkeep.model import Operation, Outcome
from nightkeep.records.document import RunDocument
from nightkeep.records.failure_outcomes import was_left

_DONE: Final = frozenset({Outcome.VERIFIED, Outcome.UNCHANGED})
_PURGING: Final = frozenset({"quarantine", "delete"})
"""Modes of a sweep that deletes old quarantines."""


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """What a table needs of its documents. `held`: the runs that its hold names, None for a hold that cannot be read.
    `is_checked`: whether its policy has versions checked. `purge_after_ms`: how long quarantines stay, None where no
    policy states it."""

    held: frozenset[str] | None = frozenset()
    is_checked: bool = True
    purge_after_ms: int | None = None


def unneeded(old: Sequence[RunDocument], newer: Iterable[RunDocument], needs: TableNeeds) -> list[RunDocument]:
    """Those of the old documents that nothing needs, oldest first. All are of one table; of the `newer` ones brief
    documents are enough."""
    if needs.held is None:
        return []
    others = [*newer]
    in_order = sorted([*others, *old], key=lambda each: each.finished_at)
    newest = {kind: document for document in in_order for kind in _kinds(document)}
    last = {id(document) for document in newest.values()}
    free = [each for each in old if id(each) not in last and not _is_needed(each, others, needs, needs.held)]
    return sorted(free, key=lambda each: each.finished_at)


def _kinds(document: RunDocument) -> Iterator[tuple[Operation, str]]:
    """The questions that the newest document with this answer answers."""
    yield document.operation, "any"
    if document.outcome in _DONE:
        yield document.operation, "done"
    if document.committed_version is not None:
        yield document.operation, "published"
        if document.base_version is not None:
            yield document.operation, "published on a version"
        if document.outcome is Outcome.VERIFIED:
            yield document.operation, "verified"
    if "orphans_total" in document.extra:
        yield document.operation, "listed orphans"


def _is_needed(document: RunDocument, newer: Collection[RunDocument], needs: TableNeeds, held: Collection[str]) -> bool:
    waits = needs.is_checked and was_left(document)
    return document.run_id in held or waits or not _is_purged(document, newer, needs.purge_after_ms)


def _is_purged(document: RunDocument, newer: Iterable[RunDocument], purge_after_ms: int | None) -> bool:
    """Whether nothing is in quarantine that the document names: it names none, or a sweep has purged it since."""
    if not document.extra.get("quarantine"):
        return True
    if purge_after_ms is None:
        return False
    due = document.finished_at + timedelta(milliseconds=purge_after_ms)
    return any(
        each.operation is Operation.SWEEP
        and each.outcome in _DONE
        and each.extra.get("mode") in _PURGING
        and each.started_at > due
        for each in newer
    )
