"""Where a call finds its policy and keeps its documents, what it is called, and the Spark that it works on."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nightkeep.errors import UsageError
from nightkeep.policy import EffectivePolicy, Overrides, PolicyFile, load_usable
from nightkeep.spark.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = TypeVar("Named", bound=StrEnum)
POLICY_PLACES = ("tables.yaml", "dags/tables.yaml")


@dataclass(frozen=True, slots=True)
class Place:
    """The policy file in force and where documents are kept."""

    policy: PolicyFile
    reports: str

    def effective(self, table: str, said: Overrides) -> EffectivePolicy:
        """The table's policy with what the call says on top. Raises UsageError."""
        chosen = self.policy.effective(table)
        return replace(chosen, settings=said.over(chosen.settings))


def find_place(policy: str | Path | None, reports: str | Path | None) -> Place:
    """What the options name, else the environment, else what is nearby; without any file an empty policy."""
    named = policy or os.environ.get("NIGHTKEEP_POLICY")
    file = Path(named) if named else next((Path(p) for p in POLICY_PLACES if Path(p).exists()), None)
    loaded = load_usable(file) if file else load_usable("tables.yaml", text="version: 1")
    beside = (file.parent if file else Path.cwd()) / "reports"
    return Place(loaded, str(reports or os.environ.get("NIGHTKEEP_REPORTS") or beside))


def start_engine(chosen: EffectivePolicy, master: str, spark: SparkSession | None) -> Engine:
    """The Spark of one call. Nothing starts before there is work for it."""
    return Engine(master=master, task_memory_bytes=chosen.settings.task_memory, spark=spark)


def name_run(run_id: str | None) -> str:
    """The run id of the caller, else a new one."""
    return run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def choose(option: str, kind: type[Named], value: str | None) -> Named | None:
    """The value by its name. Raises UsageError for a name that is none."""
    try:
        return None if value is None else kind(value)
    except ValueError as failure:
        raise UsageError(f"{option}: expected one of {', '.join(kind)}, found {value!r}") from failure
