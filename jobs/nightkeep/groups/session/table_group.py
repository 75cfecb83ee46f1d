"""The tables of one session -> their policies and run ids, and a note of the table at work."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nightkeep.admission.order import CallOptions
from nightkeep.errors import UsageError
from nightkeep.groups.stored_document import permanent
from nightkeep.model import Operation, Outcome
from nightkeep.model.night import NightPlace
from nightkeep.places import write_file
from nightkeep.policy import EffectivePolicy, Overrides, PolicyFile, Settings, format_of, suited
from nightkeep.records import RunDocument
from nightkeep.records.kept_index import indexed
from nightkeep.running.run_log import versions


@dataclass(frozen=True, slots=True)
class TableGroup:
    """The work of one session. The run id of a table is `prefix:table`, the same in every retry. `overrides` are those
    of the tables' policies, `call` what the caller asks beyond.

    `hand` is the address of a file with the names of the tables at work, a line each, for the process that continues
    after this one died. `died` are tables at which an earlier process died: they are reported from their documents, and
    not worked on. `one_by_one`: no two tables are at work at once, so that a death is blamed on one. `night`: the
    places of tables in a night with a budget, by name. `without_session`: only what needs no Spark session is done, and
    a table that needs one is left out of the results. `expected_plan`: as in Order. `launcher` is the process that
    started this one.
    """

    policy: PolicyFile
    tables: tuple[str, ...]
    prefix: str
    reports: str
    overrides: Overrides = field(default_factory=Overrides)
    call: CallOptions = field(default_factory=CallOptions)
    dry_run: bool = False
    night: Mapping[str, NightPlace] = field(default_factory=dict)
    hand: str | None = None
    died: tuple[str, ...] = ()
    one_by_one: bool = False
    without_session: bool = False
    expected_plan: str | None = None
    launcher: int = field(default_factory=os.getppid)

    def effective(self, table: str) -> EffectivePolicy:
        """The table's policy, overridden by the caller's options. Raises UsageError."""
        effective = self.policy.effective(table)
        return effective.overridden(self.overrides.values(effective.settings))

    def policies(self) -> dict[str, EffectivePolicy | Unusable]:
        """The policy of each table, or why it has none. Raises UsageError for options that suit no table."""
        self.overrides.values(Settings())
        return {table: self._policy(table) for table in self.tables}

    def run_id(self, table: str) -> str:
        return f"{self.prefix}:{table}"

    def indexed(self) -> AbstractContextManager[None]:
        """In a `with` block, the documents of this run on these tables go into one bundle of the index."""
        names = [
            each.address.name if isinstance(each, EffectivePolicy) else table for table, each in self.policies().items()
        ]
        return indexed(self.reports, self.prefix, [(name, self.run_id(name)) for name in names])

    def take(self, tables: Sequence[str]) -> None:
        """Record in `hand` that these tables are at work now."""
        if self.hand is not None:
            # Without this record, a crash counts for the whole group.
            with suppress(OSError):
                write_file(self.hand, "\n".join(tables))

    def goes_on(self) -> bool:
        """Whether more work may start: False once the JVM of spark-submit, which started this process, has ended."""
        return "PYSPARK_GATEWAY_PORT" not in os.environ or os.getppid() == self.launcher

    def unusable(self, table: str, why: str, operations: Sequence[Operation]) -> RunDocument:
        """The document of a table without a policy, for the first of the operations that were asked for."""
        formats = {entry.name: entry.format for entry in self.policy.unusable}
        kind, now = formats.get(table, format_of(table)), datetime.now(UTC)
        return permanent(
            RunDocument(
                run_id=self.run_id(table),
                table=table,
                format=kind,
                operation=(*operations, *suited(kind))[0],
                outcome=Outcome.FAILED,
                reason=why,
                started_at=now,
                finished_at=now,
                versions=versions(),
            )
        )

    def _policy(self, table: str) -> EffectivePolicy | Unusable:
        try:
            return self.effective(table)
        except UsageError as failure:
            return Unusable(str(failure))


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a table has no policy: for example, it is no longer in the file, or its address needs an unset variable."""

    why: str
