"""Documents of a table's earlier runs -> the checks that these runs left, done now.

A version is published before its check. A process that ends in between leaves a document without the result of a check.
One that ends right after the commit leaves the document of an unfinished run, and a commit that only the table names.
A retry of the run does the check. Where none comes, the next night does, or `nightkeep check --left`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import Final

from nightkeep.admission.order import Order
from nightkeep.admission.run_ids import stored_document
from nightkeep.errors import EvidenceError, NightkeepError, RefusedTable
from nightkeep.formats import open_table
from nightkeep.groups.one_operation import check_and_store
from nightkeep.groups.reads import Reads
from nightkeep.groups.session.after_crash import store_found_commits
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument, table_documents
from nightkeep.records.failure_outcomes import may_be_published, was_left
from nightkeep.retention.kept_versions import CHECK_WAIT_MS
from nightkeep.spark.engine import Engine

_LOOKED_AT: Final = 20
"""How many of the newest documents of a table a night reads for this."""
_MOST: Final = 3
"""How many checks a night does that earlier runs left, for each table: the newest ones."""


def check_lately_left(policy: EffectivePolicy, reports: str, run_id: str, reads: Reads) -> Iterator[StoredDocument]:
    """Check what runs other than `run_id` left lately, as far as the table still has the versions; newest first.

    Does nothing if the policy turns the check off."""
    if not policy.settings.check.enabled:
        return
    since = datetime.now(UTC) - timedelta(milliseconds=CHECK_WAIT_MS)
    newest = islice(table_documents(reports, policy.address.name).newest_first(), _LOOKED_AT)
    lately = takewhile(lambda document: document.finished_at >= since, newest)
    left = [document for document in lately if was_left(document) and document.run_id != run_id]
    for document in _found(policy, left, reports, reads)[:_MOST]:
        if _has_versions(policy, document, reads):
            yield _checked(policy, document, reports, reads.engine)


def check_all_left(
    policy: EffectivePolicy, left: Sequence[RunDocument], reports: str, reads: Reads
) -> Iterator[StoredDocument]:
    """Check what the runs of these documents of the table left, in their order."""
    for document in _found(policy, left, reports, reads):
        yield _checked(policy, document, reports, reads.engine)


def _checked(policy: EffectivePolicy, document: RunDocument, reports: str, engine: Engine) -> StoredDocument:
    return check_and_store(document, policy, _order(document, reports), engine)


def _order(document: RunDocument, reports: str) -> Order:
    return Order(document.operation, document.run_id, reports)


def _found(policy: EffectivePolicy, left: Sequence[RunDocument], reports: str, reads: Reads) -> list[RunDocument]:
    """The documents that wait for a check, once the table was asked for commits that they do not name."""
    for run_id in dict.fromkeys(document.run_id for document in left if may_be_published(document)):
        store_found_commits(policy, run_id, reports, reads)
    known = [_again(document, reports) if may_be_published(document) else document for document in left]
    return [document for document in known if document.awaits_check]


def _again(document: RunDocument, reports: str) -> RunDocument:
    with suppress(NightkeepError, OSError):
        return stored_document(_order(document, reports), document.table) or document
    return document


def _has_versions(policy: EffectivePolicy, document: RunDocument, reads: Reads) -> bool:
    """Whether the table still has the version and the one that it was planned on."""
    versions = [each for each in (document.committed_version, document.base_version) if each is not None]
    with suppress(NightkeepError, OSError):
        return reads.call(policy, partial(_has, policy, versions))
    return False


def _has(policy: EffectivePolicy, versions: list[int]) -> bool:
    table = open_table(policy.address)
    for version in versions:
        try:
            # A refused version exists. The check then states why it cannot be compared.
            with suppress(RefusedTable):
                table.snapshot(version)
        except (EvidenceError, FileNotFoundError):
            return False
    return True
