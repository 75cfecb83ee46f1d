"""A table -> documents of the commits of a run whose process died before it could store them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from nightkeep.admission.order import Order
from nightkeep.errors import NightkeepError
from nightkeep.groups.one_operation import stored
from nightkeep.groups.reads import Reads
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument
from nightkeep.running.run_operation import published_earlier


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
