"""What a function of the API returned -> text or JSON on stdout, and the exit status."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages import audit_text, plan_text, removal_text, summary_text
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.records.check_report import CheckReport, DiffReport

if TYPE_CHECKING:
    from nightkeep.api.doctor import Diagnosis
    from nightkeep.api.night import WholeRun
    from nightkeep.api.results import Pages, RunHistory, Runs
    from nightkeep.api.status import Statuses
    from nightkeep.api.tables import Validation

_STATUS: Final = {CheckStatus.FAILED: Outcome.MISMATCH.exit_status, CheckStatus.ERRORED: Outcome.FAILED.exit_status}


def put_result(result: Any, *, as_json: bool, **_: object) -> None:
    put(result.to_json() if as_json else str(result), as_json=as_json)


def show_runs(runs: Runs, *, as_json: bool, **_: object) -> None:
    show(runs.documents, as_json=as_json, text=str(runs))


def show_document(document: RunDocument, *, as_json: bool, dry_run: bool) -> None:
    show([document], as_json=as_json, text=plan_text(document) if dry_run else summary_text([document]))


def show_whole_run(run: WholeRun, *, as_json: bool, **_: object) -> None:
    """Exits as the worst table ended."""
    put_result(run, as_json=as_json)
    raise typer.Exit(run.outcome.exit_status)


def show_sweep(done: RunDocument | WholeRun, *, as_json: bool, **_: object) -> None:
    if isinstance(done, RunDocument):
        show_removal(done, as_json=as_json)
    else:
        show_whole_run(done, as_json=as_json)


def show_removal(document: RunDocument, *, as_json: bool, **_: object) -> None:
    show([document], as_json=as_json, text=removal_text(document))


def show_audit(document: RunDocument, *, as_json: bool, **_: object) -> None:
    show([document], as_json=as_json, text=audit_text(document))


def put_stored(result: RunHistory | Pages, *, as_json: bool, **_: object) -> None:
    """One line per unreadable file goes to stderr. The readable ones are shown as usual."""
    put_result(result, as_json=as_json)
    for each in result.unreadable:
        print(f"nightkeep: {each}", file=sys.stderr)


def put_check(report: CheckReport | RunHistory, *, as_json: bool, **_: object) -> None:
    if isinstance(report, CheckReport):
        put_result(report, as_json=as_json)
        raise typer.Exit(_STATUS.get(CheckStatus(report.status), 0))
    put_stored(report, as_json=as_json)
    raise typer.Exit(Outcome.worst(document.outcome for document in report).exit_status)


def put_diff(report: DiffReport, *, as_json: bool, **_: object) -> None:
    put_result(report, as_json=as_json)
    raise typer.Exit(0 if report.equal else Outcome.MISMATCH.exit_status)


def put_validation(found: Validation, *, as_json: bool, **_: object) -> None:
    put_result(found, as_json=as_json)
    raise typer.Exit(2 if found.faults else 0)


def put_diagnosis(found: Diagnosis, *, as_json: bool, **_: object) -> None:
    put_result(found, as_json=as_json)
    raise typer.Exit(0 if found.is_ready else Outcome.FAILED.exit_status)


def put_statuses(found: Statuses, *, as_json: bool, **_: object) -> None:
    put_result(found, as_json=as_json)
    if found.unread is not None:
        listed = counted(len(found), "table")
        print(f"nightkeep: status: expected tables that can be read, found {listed} {found.unread}", file=sys.stderr)
    if found and not any(each.table for each in found):
        raise typer.Exit(Outcome.REFUSED.exit_status)


def show(documents: Sequence[RunDocument], *, as_json: bool, text: str) -> None:
    """Print the documents as JSON (a list if there are several) or the text. Exits as the worst of them ended."""
    status = Outcome.worst(document.outcome for document in documents).exit_status
    try:
        put(_printed(documents) if as_json else text, as_json=as_json)
        sys.stdout.flush()
    except OSError as failure:
        _report_elsewhere(documents, failure)
    raise typer.Exit(status)


def _printed(documents: Sequence[RunDocument]) -> object:
    printed = [document.to_json() for document in documents]
    return printed[0] if len(printed) == 1 else printed


def _report_elsewhere(documents: Sequence[RunDocument], failure: OSError) -> None:
    """Print one line per document to stderr, because stdout cannot be written. The exit status stays the same."""
    with open(os.devnull, "wb") as nowhere:
        # Otherwise Python writes the rest of its buffer to stdout when the process ends.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    for done in documents if failure.errno != errno.EPIPE else ():
        published = "" if done.committed_version is None else f", version {done.committed_version} was published"
        text = (
            f"{done.table}: {done.operation}: {done.outcome}{published}; stdout cannot be written: {failure.strerror}"
        )
        print(f"nightkeep: {text}", file=sys.stderr)


def put(value: object, *, as_json: bool) -> None:
    """Print to stdout: the JSON value as one document, or the text."""
    print(json.dumps(value, indent=2) if as_json else value)
