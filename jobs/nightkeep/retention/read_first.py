"""A table -> its metadata, read once before the work. Metadata that kills its reader kills it here."""

from __future__ import annotations

from contextlib import suppress

from nightkeep.admission.order import Order
from nightkeep.errors import NightkeepError
from nightkeep.formats import open_table
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol.table_files import OpenFiles, SomeSource
from nightkeep.retention.expire import expire_order
from nightkeep.retention.kept_versions import retention_settings
from nightkeep.retention.orphans.growing_sets import NAMES_HERE
from nightkeep.running.run_log import RunLog


def read_metadata(policy: EffectivePolicy, order: Order) -> None:
    """Read the metadata that the work will read outside of Spark.

    Errors are not reported: the work reads the metadata again, which may have changed by then, and reports its own.
    """
    with suppress(NightkeepError, OSError):
        table = open_table(policy.address)
        if table.retention is not None and not table.never_written():
            _read(table.retention, policy, order)


def _read(table: OpenFiles, policy: EffectivePolicy, order: Order) -> None:
    table.table_files()
    now_ms = order.attempt().now_ms
    if order.operation is Operation.EXPIRE:
        table.expiry(expire_order(RunLog(policy, order), order.mode_for(policy), now_ms).request)
    names, read = 0, set[SomeSource]()
    for root in table.roots(retention_settings(policy, order, now_ms=now_ms)):
        for source in table.reach(root).sources:
            if source not in read:
                read.add(source)
                for files in table.live(source):
                    names += files.num_rows
                    if names > NAMES_HERE:
                        return
