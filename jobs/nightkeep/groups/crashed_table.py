"""Stored documents of a table whose process died -> the documents that its run ends with. The table is not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, document_path, load_document
from nightkeep.records.after_commit import unfinished_check, unjudged

DIED: Final = "the process that worked on this table died; the rest of its group went on without it"

_AGAIN: Final = frozenset({Outcome.FAILED, Outcome.CONFLICTED})
"""Outcomes that an earlier try may have stored: the present try does not count as done with them."""


def end_after_crash(
    table: str,
    run_id: str,
    reports: str,
    operations: Sequence[Operation],
    *,
    checks: bool,
    failed: Callable[[Operation, str], RunDocument],
) -> Iterator[RunDocument]:
    """The documents of the operations that were done, then one for the operation during which the process died.

    `failed` makes the document of that operation. `checks`: what the run does is checked. The process died during the
    check if that check is left.
    """
    for operation in operations:
        document = _stored_document(table, run_id, reports, operation)
        unchecked = document is not None and checks and unjudged(document)
        if document is None or (document.outcome in _AGAIN and not unchecked):
            yield failed(operation, DIED)
            return
        if unchecked:
            yield unfinished_check(document, DIED)
            return
        yield document


def _stored_document(table: str, run_id: str, reports: str, operation: Operation) -> RunDocument | None:
    try:
        return load_document(document_path(reports, table, run_id=run_id, operation=operation))
    except (FileNotFoundError, CorruptMetadata):
        return None
