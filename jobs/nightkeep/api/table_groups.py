"""A group of tables -> its stored documents, one after the other, in one Spark session. For the job scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nightkeep.api.call_context import new_engine
from nightkeep.groups.session.check_group import check_group
from nightkeep.groups.session.run_group import run_group, sweep_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy
from nightkeep.spark.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Where the session of a group is: on a master, by default that of the environment, or the caller's own."""

    master: str | None = None
    spark: SparkSession | None = None


OF_JOB: Final = SessionOptions()


@contextmanager
def run_tables(
    group: TableGroup, operations: Sequence[Operation], session: SessionOptions = OF_JOB
) -> Iterator[Iterator[StoredDocument]]:
    """Run these operations, or without any those of each table's policy, and check every published version."""
    with _engine_of(group, session) as engine, group.indexed():
        yield run_group(group, operations, engine)


@contextmanager
def check_tables(group: TableGroup, session: SessionOptions = OF_JOB) -> Iterator[Iterator[StoredDocument]]:
    """Check every version that the group's run published and that no check has judged."""
    with _engine_of(group, session) as engine, group.indexed():
        yield check_group(group, engine)


@contextmanager
def sweep_tables(group: TableGroup, session: SessionOptions = OF_JOB) -> Iterator[Iterator[StoredDocument]]:
    """Expire and sweep the tables by their policies, and check the remaining files."""
    with _engine_of(group, session) as engine, group.indexed():
        yield sweep_group(group, engine)


_IN_YARN: Final = "SPARK_YARN_STAGING_DIR"
"""YARN sets it for a driver that it runs. There, an application whose driver ends without a session has failed (exit
code 13), and one that has none after 100 s is ended."""


@contextmanager
def _engine_of(group: TableGroup, session: SessionOptions) -> Iterator[Engine]:
    """The engine of the process. Its session starts when a table has work; in YARN at once."""
    with _new_engine(group, session) as engine:
        if _IN_YARN in os.environ and not group.without_session:
            engine.start()
        yield engine


def _new_engine(group: TableGroup, session: SessionOptions) -> Engine:
    policies = [each for each in group.policies().values() if isinstance(each, EffectivePolicy)]
    memory = max((policy.settings.task_memory for policy in policies), default=2 << 30)
    # Under spark-submit the session already exists, and its master applies.
    if group.without_session:
        return Engine(master="none", task_memory_bytes=memory, starts=False)
    checks = any(policy.settings.check.enabled for policy in policies)
    settings = {name: value for policy in policies for name, value in policy.settings.spark}
    master = session.master or os.environ.get("NIGHTKEEP_MASTER", "local[*]")
    return new_engine(master, memory, session.spark, checks=checks, settings=settings)
