"""A group of tables -> the documents of its run, each with the check that was left to do."""

from __future__ import annotations

from collections.abc import Iterator

from nightkeep.admission.order import Order
from nightkeep.groups.children.child_process import ChildProcesses
from nightkeep.groups.one_operation import check_and_store, stored
from nightkeep.groups.reads import Reads
from nightkeep.groups.session.after_crash import DIED, store_found_commits
from nightkeep.groups.session.left_checks import check_lately_left
from nightkeep.groups.session.table_group import TableGroup, Unusable
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.policy import EffectivePolicy
from nightkeep.records import read_history
from nightkeep.records.failure_outcomes import unfinished_check
from nightkeep.spark.engine import Engine


def check_group(group: TableGroup, engine: Engine) -> Iterator[StoredDocument]:
    """Check every version of this run that no check has judged yet; yields every document of the run, table by table,
    and before them those of earlier runs whose check is done now.

    Commits that no document names, because the process died before, are looked up in the table itself.
    """
    with ChildProcesses(1) as apart:
        reads = Reads(engine, apart)
        for table, policy in group.policies().items():
            group.take([table])
            name, why = table, DIED
            if isinstance(policy, Unusable):
                why = policy.why
            else:
                name = policy.address.name
                if table not in group.died:
                    yield from check_lately_left(policy, group.reports, group.run_id(name), reads)
                store_found_commits(policy, group.run_id(name), group.reports, reads)
            for document in read_history(group.reports, name).documents:
                if document.run_id != group.run_id(name):
                    continue
                if isinstance(policy, EffectivePolicy) and not (document.awaits_check and table in group.died):
                    order = Order(document.operation, document.run_id, group.reports)
                    yield check_and_store(document, policy, order, engine)
                elif document.awaits_check:
                    yield stored(unfinished_check(document, why), group.reports)
