"""Documents -> what a notebook shows of them, and a few lines for a prompt. Every text is escaped and redacted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nightkeep.card import render_card
from nightkeep.pages.bars import show_bytes, show_seconds
from nightkeep.pages.history_text import run_name
from nightkeep.pages.summary import plan_end, plan_head
from nightkeep.pages.templating import minute
from nightkeep.records.document import PlanUnit, RunDocument
from nightkeep.redaction import redact

_RUNS: Final = ("table", "operation", "outcome", "version", "time", "reason")
_HISTORY: Final = ("started", "run", "table", "operation", "outcome", "versions", "time", "reason")
_UNITS: Final = ("partition", "bucket", "why", "files", "bytes")
_MOST_LINES: Final = 5


def few_lines(what: str, lines: Sequence[str]) -> str:
    """What a prompt shows: how much there is, and the first of it."""
    more = [f"  and {len(lines) - _MOST_LINES:,} more"] if len(lines) > _MOST_LINES else []
    return redact("\n".join([f"<{what}>", *(f"  {line}" for line in lines[:_MOST_LINES]), *more]))


def runs_card(documents: Sequence[RunDocument]) -> str:
    rows = [
        (each.table, each.operation, each.outcome, _version(each), show_seconds(each.total_seconds), each.reason or "")
        for each in documents
    ]
    return render_card("run", (), _RUNS, rows)


def plans_card(documents: Sequence[RunDocument]) -> str:
    """A card for each plan: what would be done to each unit and why, and what is expected of it."""
    return "".join(
        render_card(
            each.table, (_without_table(each), *plan_end(each)), _UNITS, [_unit(unit) for unit in each.plan.units]
        )
        for each in documents
    )


def history_card(documents: Sequence[RunDocument], sentences: Sequence[str]) -> str:
    """A row for each document, newest first."""
    rows = [
        (
            minute(each.started_at),
            run_name(each),
            each.table,
            each.operation,
            each.outcome,
            _versions(each),
            show_seconds(each.total_seconds),
            each.reason or "",
        )
        for each in reversed(documents)
    ]
    return render_card("history", sentences, _HISTORY, rows)


def _without_table(document: RunDocument) -> str:
    return plan_head(document).removeprefix(f"{document.table}: ")


def _unit(unit: PlanUnit) -> tuple[str, ...]:
    bucket = "" if unit.bucket is None else str(unit.bucket)
    return (unit.partition, bucket, unit.reason, f"{len(unit.input_files):,}", show_bytes(unit.input_bytes))


def _version(document: RunDocument) -> str:
    version = document.base_version if document.committed_version is None else document.committed_version
    return "" if version is None else str(version)


def _versions(document: RunDocument) -> str:
    if document.committed_version is None or document.parent_version is None:
        return _version(document)
    return f"{document.parent_version} -> {document.committed_version}"
