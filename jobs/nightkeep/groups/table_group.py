"""The tables of one session: their policies, their run ids, and which of them is at work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from nightkeep.errors import UsageError
from nightkeep.policy import EffectivePolicy, Overrides, PolicyFile, Settings

UNFINISHED = "published, but its check did not finish: "
"""What the reason of a document begins with whose check was ended by a surprise."""


@dataclass(frozen=True, slots=True)
class TableGroup:
    """What one session is asked to do. The run id of a table is `prefix:table`, the same in every retry.

    `hand` is a file that names the table at work, for whoever finds this process dead. A table of `died` is one at
    which a process before this one died: it is told of as it is, and not worked on.
    """

    policy: PolicyFile
    tables: tuple[str, ...]
    prefix: str
    reports: str
    said: Overrides = field(default_factory=Overrides)
    dry_run: bool = False
    hand: Path | None = None
    died: tuple[str, ...] = ()

    def effective(self, table: str) -> EffectivePolicy:
        """The table's policy with what was said on top. Raises UsageError."""
        effective = self.policy.effective(table)
        return replace(effective, settings=self.said.over(effective.settings))

    def policies(self) -> dict[str, EffectivePolicy | Unusable]:
        """The policy of each table, or why it has none. Raises UsageError for what was said, whatever the table."""
        self.said.over(Settings())
        return {table: self._policy(table) for table in self.tables}

    def run_id(self, table: str) -> str:
        return f"{self.prefix}:{table}"

    def take(self, table: str) -> None:
        """Leave a note that this table is at work now."""
        if self.hand is not None:
            # Without it a death is the whole group's.
            with suppress(OSError):
                self.hand.write_text(table, encoding="utf-8")

    def _policy(self, table: str) -> EffectivePolicy | Unusable:
        try:
            return self.effective(table)
        except UsageError as failure:
            return Unusable(str(failure))


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a table has no policy: it is no longer in the file, say, or its address asks for an unset variable."""

    why: str
