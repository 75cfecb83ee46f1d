"""What a function of the API returned -> text or JSON on stdout, and the exit status."""

from __future__ import annotations

import sys
from typing import Any, Final

import typer

from nightkeep.api.results import Pages, RunHistory, Runs
from nightkeep.api.status import Statuses
from nightkeep.api.tables import Validation
from nightkeep.commands.printing import put, show
from nightkeep.commands.retention import removal_text
from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages import plan_text, summary_text
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.records.check_report import CheckReport, DiffReport

_STATUS: Final = {CheckStatus.FAILED: Outcome.MISMATCH.exit_status, CheckStatus.ERRORED: Outcome.FAILED.exit_status}


def put_result(result: Any, *, as_json: bool, **_: object) -> None:
    put(result.to_json() if as_json else str(result), as_json=as_json)


def show_runs(runs: Runs, *, as_json: bool, **_: object) -> None:
    show(runs.documents, as_json=as_json, text=str(runs))


def show_document(document: RunDocument, *, as_json: bool, dry_run: bool) -> None:
    show([document], as_json=as_json, text=plan_text(document) if dry_run else summary_text([document]))


def show_removal(document: RunDocument, *, as_json: bool, **_: object) -> None:
    show([document], as_json=as_json, text=removal_text(document))


def put_stored(result: RunHistory | Pages, *, as_json: bool, **_: object) -> None:
    """One line per unreadable file goes to stderr. The readable ones are shown as usual."""
    put_result(result, as_json=as_json)
    for each in result.unreadable:
        print(f"nightkeep: {each}", file=sys.stderr)


def put_check(report: CheckReport, *, as_json: bool, **_: object) -> None:
    put_result(report, as_json=as_json)
    raise typer.Exit(_STATUS.get(CheckStatus(report.status), 0))


def put_diff(report: DiffReport, *, as_json: bool, **_: object) -> None:
    put_result(report, as_json=as_json)
    raise typer.Exit(0 if report.equal else Outcome.MISMATCH.exit_status)


def put_validation(found: Validation, *, as_json: bool, **_: object) -> None:
    put_result(found, as_json=as_json)
    raise typer.Exit(2 if found.faults else 0)


def put_statuses(found: Statuses, *, as_json: bool, **_: object) -> None:
    put_result(found, as_json=as_json)
    if found.unread is not None:
        listed = counted(len(found), "table")
        print(f"nightkeep: status: expected tables that can be read, found {listed} {found.unread}", file=sys.stderr)
    if found and not any(each.table for each in found):
        raise typer.Exit(Outcome.REFUSED.exit_status)
