"""A table whose process died -> the documents that its run ends with, and those of commits that no document names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.admission.run_ids import stored_document
from nightkeep.errors import CorruptMetadata, NightkeepError
from nightkeep.groups.one_operation import stored
from nightkeep.groups.reads import Reads
from nightkeep.model import Operation, Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument
from nightkeep.records.failure_outcomes import unfinished_check, unjudged
from nightkeep.running.ended_early import failed
from nightkeep.running.rewrites.run_operation import published_earlier

DIED: Final = "the process that worked on this table died; the rest of its group went on without it"

_AGAIN: Final = frozenset({Outcome.FAILED, Outcome.CONFLICTED})
"""Outcomes that an earlier try may have stored: the present try does not count as done with them."""


def end_after_crash(policy: EffectivePolicy, orders: Sequence[Order]) -> Iterator[RunDocument]:
    """The documents of the orders that were done, then one for the order during which the process died.

    Only stored documents are read, not the table. The process died during the check if that check is left.
    """
    for order in orders:
        document = None
        with suppress(CorruptMetadata):
            document = stored_document(order, policy.address.name)
        unchecked = document is not None and order.checked(policy) and unjudged(document)
        if document is None or (document.outcome in _AGAIN and not unchecked):
            yield failed(policy, order, DIED)
            return
        if unchecked:
            yield unfinished_check(document, DIED)
            return
        yield document


def store_found_commits(policy: EffectivePolicy, run_id: str, reports: str, reads: Reads) -> None:
    """Store a document for each operation whose commits of this run are in the table itself.

    If the table cannot be read now, its documents are as they were."""
    with suppress(NightkeepError, OSError):
        for document in reads.call(policy, partial(_found, policy, run_id, reports)):
            stored(document, reports)


def _found(policy: EffectivePolicy, run_id: str, reports: str) -> list[RunDocument]:
    documents = []
    for operation in (each for each in Operation if each.rewrites):
        with suppress(NightkeepError, OSError):
            document = published_earlier(policy, Order(operation, run_id, reports))
            documents += [] if document is None else [document]
    return documents
