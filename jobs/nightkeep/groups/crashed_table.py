"""Stored documents of a table whose process died -> the documents that its run ends with. The table is not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.admission.run_ids import stored_document
from nightkeep.errors import CorruptMetadata
from nightkeep.model import Outcome
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument
from nightkeep.records.after_commit import unfinished_check, unjudged
from nightkeep.running.run_failures import failed

DIED: Final = "the process that worked on this table died; the rest of its group went on without it"

_AGAIN: Final = frozenset({Outcome.FAILED, Outcome.CONFLICTED})
"""Outcomes that an earlier try may have stored: the present try does not count as done with them."""


def end_after_crash(policy: EffectivePolicy, orders: Sequence[Order]) -> Iterator[RunDocument]:
    """The documents of the orders that were done, then one for the order during which the process died.

    The process died during the check if that check is left.
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
