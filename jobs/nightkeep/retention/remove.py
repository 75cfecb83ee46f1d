"""A sweep, an expiry or a restore: the table is opened, its owner's settings are read, then files are listed or
removed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import owner_of, owner_settings
from nightkeep.admission.reasons import Act, Case, Opened, reason_to_skip
from nightkeep.errors import NightkeepError
from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.sweep_rules import FoundBy
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol.table_files import OpenFiles, OpenRoot, Retention, SomeSource
from nightkeep.records import RunDocument
from nightkeep.retention.expire import expire_order
from nightkeep.retention.kept_versions import retained_files, retention_settings
from nightkeep.retention.orphans.growing_sets import NAMES_HERE
from nightkeep.retention.search import search_of
from nightkeep.running.run_log import RunLog
from nightkeep.spark.engine import Engine

Removing = Callable[[RunLog, OpenFiles, Run, Engine], RunDocument]


def remove(
    log: RunLog, case: Case, *, removing: Removing, engine: Engine, first: Callable[[EffectivePolicy, Order], None]
) -> RunDocument:
    """Open the table, and do what `removing` does unless its owner forbids it. `first` is called before any metadata is
    read. Spark starts only if something will be removed and checked afterwards."""
    first(log.policy, log.order)
    table = open_table(log.policy.address)
    if case.act is not Act.RESTORE:
        if table.never_written():
            return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
        description = table.description()
        log.facts["table_id"] = description.id
        # Files may be listed, whoever else manages the table.
        log.owner = (owner_settings if case.act is Act.LIST else owner_of)(log.policy, description)
    waiting = reason_to_skip(replace(case, opened=Opened(log.owner)))
    if waiting is not None:
        return log.document(Outcome.SKIPPED, waiting)
    return removing(log, retained_files(table, log.order.operation), log.order.attempt(), engine)


def read_metadata(policy: EffectivePolicy, order: Order) -> None:
    """Read the metadata that the work will read outside of Spark. Metadata that kills its reader kills it here.

    Errors are not reported: the work reads the metadata again, which may have changed by then, and reports its own.
    """
    with suppress(NightkeepError, OSError):
        table = open_table(policy.address)
        if table.retention is not None and not table.never_written():
            _read_once(table.retention, policy, order)


def _read_once(table: OpenFiles, policy: EffectivePolicy, order: Order) -> None:
    table.table_files()
    now_ms = order.attempt().now_ms
    if order.operation is Operation.EXPIRE:
        table.expiry(expire_order(RunLog(policy, order), order.mode_for(policy), now_ms).request)
    names, read = 0, set[SomeSource]()
    retention = retention_settings(policy, order, now_ms=now_ms)
    for root in (*table.roots(retention), *_removed_by_log(table, policy, order, retention)):
        for source in table.reach(root).sources:
            if source not in read:
                read.add(source)
                for files in table.live(source):
                    names += files.num_rows
                    if names > NAMES_HERE:
                        return


def _removed_by_log(
    table: OpenFiles, policy: EffectivePolicy, order: Order, retention: Retention
) -> tuple[OpenRoot, ...]:
    """The roots of what a sweep from the log would remove; none for another removal."""
    if order.operation is not Operation.SWEEP or table.by_log is None:
        return ()
    search = search_of(RunLog(policy, order), table, now_ms=retention.now_ms)
    return table.by_log.removals(search.since, retention).roots if search.found_by is FoundBy.LOG else ()
