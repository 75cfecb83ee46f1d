"""A table, or all tables -> the documents of runs whose check was left behind, each with the check that is done now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nightkeep.api.call_context import CallContext, new_engine
from nightkeep.api.notices import notify_of_documents
from nightkeep.api.results import RunHistory
from nightkeep.errors import UsageError
from nightkeep.groups.one_operation import stored
from nightkeep.groups.reads import Reads
from nightkeep.groups.session.left_checks import check_all_left
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.policy import EffectivePolicy
from nightkeep.records import RunDocument, read_history
from nightkeep.records.failure_outcomes import unfinished_check, was_left

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_left(context: CallContext, table: str | None, master: str, spark: SparkSession | None) -> RunHistory:
    """Check what runs left. A table that the policy does not have is opened by the address in its document."""
    name = None if table is None else context.chosen(table).address.name
    history = read_history(context.reports, name)
    left: dict[str, list[RunDocument]] = {}
    for document in filter(was_left, history.documents):
        left.setdefault(document.table, []).append(document)
    policies = {each: _policy(context, documents[-1]) for each, documents in left.items()}
    memory = [policy.settings.task_memory for policy in policies.values() if isinstance(policy, EffectivePolicy)]
    done = list[StoredDocument]()
    with new_engine(master, max(memory, default=2 << 30), spark, checks=True) as engine:
        for each, policy in policies.items():
            if isinstance(policy, EffectivePolicy):
                done += check_all_left(policy, left[each], context.reports, Reads(engine))
            else:
                waiting = (document for document in left[each] if document.awaits_check)
                done += [stored(unfinished_check(document, policy), context.reports) for document in waiting]
    checked = tuple(each.document for each in done)
    for each, policy in policies.items():
        if isinstance(policy, EffectivePolicy):
            notify_of_documents(policy, [document for document in checked if document.table == each], context.reports)
    return RunHistory(checked, history.unreadable)


def _policy(context: CallContext, document: RunDocument) -> EffectivePolicy | str:
    """The policy of a table that has documents, or why it has none."""
    try:
        return context.chosen(document.table)
    except UsageError as failure:
        if document.address is None:
            return str(failure)
    try:
        found = context.chosen(document.address)
    except UsageError as failure:
        return str(failure)
    return replace(found, address=replace(found.address, name=document.table))
