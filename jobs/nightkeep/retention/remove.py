"""A sweep, an expiry or a restore: the table is opened, its owner's settings are read, then files are listed or
removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import owner_of, owner_settings
from nightkeep.admission.reasons import Act, Case, Opened, reason_to_skip
from nightkeep.formats import open_table
from nightkeep.model import Outcome, Run
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.records import RunDocument
from nightkeep.retention.kept_versions import retained_files
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
