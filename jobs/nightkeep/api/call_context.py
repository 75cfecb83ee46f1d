"""Options of a call -> its policy file, folder of reports, run id and Spark engine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nightkeep.checking.on_spark import import_check
from nightkeep.discovery import completed, find_tables, knowing, last_found, located_all
from nightkeep.errors import AddressError, UsageError
from nightkeep.formats import task_modules
from nightkeep.places import is_address as is_stored
from nightkeep.places import reports_place
from nightkeep.policy import EffectivePolicy, Overrides, PolicyFile, is_address, load_usable, parse_duration
from nightkeep.policy.files import beside
from nightkeep.protocol.foreign_tables import suggested_for_path
from nightkeep.spark.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = TypeVar("Named", bound=StrEnum)
POLICY_PLACES = ("tables.yaml", "dags/tables.yaml")


@dataclass(frozen=True, slots=True)
class CallContext:
    """The policy file in force, and where documents are: a folder, or an address in a bucket.

    `has_file`: the policy is from a file. Without one it is empty, and only addresses identify tables.
    """

    policy: PolicyFile
    reports: str
    has_file: bool = True

    def effective(self, table: str, overrides: Overrides) -> EffectivePolicy:
        """The table's policy, overridden by the call's options. Raises UsageError."""
        chosen = self.chosen(table)
        return chosen.overridden(overrides.values(chosen.settings))

    def chosen(self, table: str) -> EffectivePolicy:
        """The table's policy. A name that the file does not have is looked for in the places that the file names.

        Raises UsageError."""
        try:
            return knowing(self.policy, (table,)).effective(table)
        except AddressError as failure:
            if is_address(table):
                raise
            meant = suggested_for_path(table) or self._nearest(table)
            if self.has_file and meant is None:
                raise
            raise self._no_address(table, meant) from failure

    def _nearest(self, table: str) -> str | None:
        """The name that looks most like this one, of the tables that the last night found. Of those that the file
        lists, the policy has suggested one."""
        listed = [each.name for each in self.policy.tables]
        if get_close_matches(table, listed, n=1):
            return None
        found = [each.name for each in last_found(self.reports).tables]
        return next(iter(get_close_matches(table, found, n=1)), None)

    def _no_address(self, table: str, meant: str | None) -> UsageError:
        """For a name that nothing has. `meant` is the address of the table in a folder of this name, or a name like
        it."""
        hint = "" if meant is None else f"; did you mean {meant}?"
        missing = "" if self.has_file else f"; no policy file is at {' or '.join(POLICY_PLACES)}"
        return UsageError(
            f"{table}: expected a name of {self.policy.file} or an address such as paimon:/path, found neither"
            f"{missing}{hint}"
        )

    def with_discovered(self) -> PolicyFile:
        """The policy file with every table that is found in the places that it names."""
        return completed(located_all(self.policy), find_tables(self.policy.discoveries))


def parse_duration_option(option: str, text: str) -> int:
    """The duration that an option of a call gives, in milliseconds. Raises UsageError."""
    try:
        return parse_duration(text)
    except ValueError as failure:
        raise UsageError(f"{option}: expected {failure.args[0]}, found {text!r}") from failure


def find_policy(policy: str | Path | None) -> str | None:
    """The policy file of the option, else of the environment, else nearby; None if there is none nearby. A path, or the
    address of a file in a store."""
    named = policy or os.environ.get("NIGHTKEEP_POLICY")
    if named:
        return str(named) if is_stored(named) else str(Path(named))
    return next((place for place in POLICY_PLACES if Path(place).exists()), None)


def require_policy(policy: str | Path | None) -> str:
    """The policy file, as `find_policy`. Raises UsageError if there is none."""
    file = find_policy(policy)
    if file is None:
        raise UsageError(f"--policy: expected a policy file, found none at {' or '.join(POLICY_PLACES)}")
    return file


def find_context(policy: str | Path | None, reports: str | Path | None) -> CallContext:
    """The policy and the folder of reports of the options, else of the environment, else nearby. Without a file, the
    policy is empty."""
    file = find_policy(policy)
    loaded = load_usable(file) if file else load_usable("tables.yaml", text="version: 1")
    return CallContext(loaded, reports_place(reports_beside(file, reports)), has_file=file is not None)


def reports_beside(file: str | None, reports: str | Path | None) -> str:
    """The place of reports of the option, else of the environment, else beside the policy file."""
    nearby = beside(file or str(Path.cwd() / "tables.yaml"), "reports")
    return str(reports or os.environ.get("NIGHTKEEP_REPORTS") or nearby)


def start_engine(chosen: EffectivePolicy, master: str, spark: SparkSession | None, *, checks: bool = False) -> Engine:
    """The engine of one call. Spark starts only when there is work for it."""
    settings = chosen.settings
    return new_engine(master, settings.task_memory, spark, checks=checks, settings=dict(settings.spark))


def new_engine(
    master: str,
    task_memory_bytes: int,
    spark: SparkSession | None = None,
    *,
    checks: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Engine:
    """An engine for tables; with `checks`, for checks among others."""
    return Engine(
        master=master,
        task_memory_bytes=task_memory_bytes,
        spark=spark,
        task_modules=task_modules,
        meanwhile=import_check if checks else lambda: None,
        packages=("great_expectations",) if checks else (),
        settings=settings,
    )


def name_run(run_id: str | None) -> str:
    """The caller's run id, else a new one."""
    return run_id or f"manual-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def refuse_others(option: str, expected: str, others: Mapping[str, object]) -> None:
    """Raise UsageError for the first other option that the call gives beside `option`. Options that are None are not
    given; `expected` states what may stand there."""
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise UsageError(f"{option}: expected {expected}, found {given[0]}")


def choose(option: str, kind: type[Named], value: str | None) -> Named | None:
    """The value with this name, or None. Raises UsageError for an unknown name."""
    try:
        return None if value is None else kind(value)
    except ValueError as failure:
        raise UsageError(f"{option}: expected one of {', '.join(kind)}, found {value!r}") from failure
