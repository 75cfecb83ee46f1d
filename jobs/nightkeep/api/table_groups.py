"""Groups of tables, as job scripts work on them: one Spark session, an entry for each document once it is stored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nightkeep.groups.run_group import StoredDocument, check_group, run_group, sweep_group
from nightkeep.groups.table_group import TableGroup
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.spark.engine import Engine


@contextmanager
def run_tables(group: TableGroup, operations: Sequence[Operation]) -> Iterator[Iterator[StoredDocument]]:
    """Run these operations, or without any what each table's policy asks for, and check what that publishes."""
    with _engine(group) as engine:
        yield run_group(group, operations, engine)


@contextmanager
def check_tables(group: TableGroup) -> Iterator[Iterator[StoredDocument]]:
    """Check what the group's run published and no check has judged."""
    with _engine(group) as engine:
        yield check_group(group, engine)


@contextmanager
def sweep_tables(group: TableGroup) -> Iterator[Iterator[StoredDocument]]:
    """Expire and sweep the tables as their policies say, and check what is left."""
    with _engine(group) as engine:
        yield sweep_group(group, engine)


def _engine(group: TableGroup) -> Engine:
    policies = [each for each in group.policies().values() if isinstance(each, EffectivePolicy)]
    memory = max((policy.settings.task_memory for policy in policies), default=2 << 30)
    # Under spark-submit the session is there already and its master stands.
    return Engine(master=os.environ.get("NIGHTKEEP_MASTER", "local[*]"), task_memory_bytes=memory)
