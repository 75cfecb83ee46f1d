"""nightkeep.status: tables -> how they are, the worst first, with what maintenance would gain and cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from nightkeep.api.call_context import find_context, require_policy
from nightkeep.card import render_card
from nightkeep.groups.night_plan import budgets_of, night_order
from nightkeep.groups.read_tables import statuses
from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages import few_lines
from nightkeep.pages.bars import show_bytes
from nightkeep.pages.text_table import aligned_lines, indented, printable
from nightkeep.policy import PolicyFile
from nightkeep.redaction import redact
from nightkeep.running.inspection.table_status import StatusJson, TableStatus

_HEAD = ("table", "score", "files", "small", "bytes", "deleted", "deletes", "level 0")
"""Delete files, and rows on level 0."""


@dataclass(frozen=True, slots=True)
class Statuses:
    """The status of each table: those with work by falling score, those without, those that cannot be read."""

    tables: tuple[TableStatus, ...]

    def __iter__(self) -> Iterator[TableStatus]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, place: int) -> TableStatus:
        return self.tables[place]

    @property
    def unread(self) -> Outcome | None:
        """The worst outcome of its tables where none of them could be read; None where one could, or none is there."""
        found = [each.unread for each in self.tables]
        known = [outcome for outcome in found if outcome is not None]
        return Outcome.worst(known) if known and len(known) == len(found) else None

    def to_json(self) -> list[StatusJson]:
        return [{**each.to_json(), "table": redact(each.table), "why": redact(each.why)} for each in self.tables]

    def __repr__(self) -> str:
        lines = [f"{each.name}: {each.why}" for each in self.tables]
        return few_lines(f"status of {counted(len(self.tables), 'table')}", lines)

    def _repr_html_(self) -> str:
        return render_card("status", (), (*_HEAD, "why"), [(*_row(each), each.why) for each in self.tables])

    def __str__(self) -> str:
        head, *rows = aligned_lines([_HEAD, *map(_row, self.tables)], numbers=range(1, len(_HEAD)))
        pairs = zip(self.tables, rows, strict=True)
        return "\n".join([head, *(line for each, row in pairs for line in (row, *_why(each)))])


def status(
    table: str | None = None, *, policy: str | Path | None = None, reports: str | Path | None = None
) -> Statuses:
    """How a table is, or every table of the policy. Reads metadata only, and starts no Spark.

    A table that cannot be read is listed with the reason. Raises UsageError for an unknown table, and, without a table,
    where no policy file is.
    """
    if table is None:
        require_policy(policy)
    context = find_context(policy, reports)
    whole = context.with_discovered() if table is None else context.policy
    policies = [context.chosen(table)] if table is not None else [whole.of_table(each) for each in whole.tables]
    found = list(statuses(policies, context.reports, now=datetime.now(UTC)))
    if table is None:
        budgets = budgets_of(whole)
        places = {each.table: each for each in night_order(found, budgets)} if budgets else {}
        found = [replace(each, night=places.get(each.name)) for each in found]
        found += _unusable(whole)
    return Statuses(tuple(sorted(found, key=_urgency)))


def _unusable(policy: PolicyFile) -> Iterator[TableStatus]:
    for each in policy.unusable:
        yield TableStatus(
            name=each.name, table="", format=each.format, why=f"refused: {each.fault}", unread=Outcome.REFUSED
        )


def _urgency(each: TableStatus) -> tuple[bool, float, bool, str]:
    return (each.score is None, -(each.score or 0), not each.metrics, each.name)


def _row(each: TableStatus) -> tuple[str, ...]:
    found = each.metrics
    size, share = found.get("bytes"), found.get("deleted_ratio")
    return (
        each.name,
        "-" if each.score is None else f"{each.score:.2f}",
        _count(found.get("files")),
        _count(found.get("small_files")),
        "-" if size is None else show_bytes(int(size)),
        "-" if share is None else f"{share:.1%}",
        _count(found.get("delete_files")),
        _count(found.get("level0_rows")),
    )


def _why(each: TableStatus) -> list[str]:
    """What work would do, how long it would take, and when: lines below the table's own."""
    took = "" if each.would is None else f"; {each.would.seconds:.0f} s"
    # The score is in the line above.
    night = "" if each.night is None else f"; {each.night.reason.replace(f', score {each.score or 0:.2f}', '')}"
    return indented(printable(redact(f"{each.why}{took}{night}")))


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,}"
