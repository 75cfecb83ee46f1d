"""Settled results and their documents -> the page of a run, and the index over all runs.

Every table of the run is on its page, also a table without a document.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from nightkeep.errors import UsageError
from nightkeep.model import Operation
from nightkeep.nights.settled import Settled
from nightkeep.nights.settled_documents import documents_of
from nightkeep.pages import render_index, render_run
from nightkeep.policy import PolicyFile, format_of, suited
from nightkeep.records import History, RunDocument, page_name, pages_in, store_if_absent, write_page
from nightkeep.records.failure_outcomes import unreported_as_failed
from nightkeep.records.kept_index import indexed, keep_index

INDEX = "index"


@dataclass(frozen=True, slots=True)
class RunPage:
    """The run of a page: `prefix` is that of `runs.run_prefix`; `now` has a zone.

    `operation` is the operation for every table; None means those of its policy.
    """

    prefix: str
    title: str
    now: datetime
    operation: Operation | None = None


def store_unreported(reports: str, run: RunPage, result: Settled, policy: PolicyFile) -> Settled:
    """The result with the document of a table on which no job reported, so that its history has this run as well."""
    if result.documents:
        return result
    with suppress(OSError):
        address = store_if_absent(_unreported(result, run, policy), reports)
        return result if address is None else replace(result, documents=(address,))
    return result


def store_missing(reports: str, run: RunPage, settled: Sequence[Settled], policy: PolicyFile) -> list[Settled]:
    """The results, those without a document with one."""
    runs = [(result.table, f"{run.prefix}:{result.table}") for result in settled if not result.documents]
    if not runs:
        return [*settled]
    with indexed(reports, run.prefix, runs):
        return [store_unreported(reports, run, result, policy) for result in settled]


def page_path(prefix: str) -> str:
    """The name of a page, relative to the place of reports."""
    return f"pages/{page_name(prefix)}"


def write_run(reports: str, run: RunPage, results: Sequence[Settled], *, policy: PolicyFile) -> str:
    """Write the run's page and the index. Returns the address of the page."""
    read_ns = time.time_ns()
    stored = documents_of(results, reports, run.prefix)
    documents = [document for result in results for document in _documents(result, stored, run, policy)]
    page = write_page(reports, run.prefix, render_run(documents, title=run.title, generated_at=run.now))
    history = keep_index(reports, prefix=run.prefix, documents=stored.values(), read_ns=read_ns)
    write_page(reports, INDEX, _index(history, pages_in(reports), run.now))
    return page


def _documents(
    result: Settled, stored: Mapping[str, RunDocument], run: RunPage, policy: PolicyFile
) -> list[RunDocument]:
    """What was written about a table, the settled outcome on it where the documents know less. The index names those
    that cannot be read."""
    readable = [unreported_as_failed(stored[each]) for each in result.documents if each in stored]
    documents = readable or [_unreported(result, run, policy)]
    if all(document.outcome is not result.outcome for document in documents):
        documents[0] = replace(documents[0], outcome=result.outcome, reason=result.reason)
    return documents


def _unreported(result: Settled, run: RunPage, policy: PolicyFile) -> RunDocument:
    kind, operations = _known(result.table, policy)
    return RunDocument(
        run_id=f"{run.prefix}:{result.table}",
        table=result.table,
        format=kind,
        # No process lived to report the operation, so name the one that was to run first.
        operation=run.operation or operations[0],
        outcome=result.outcome,
        reason=result.reason,
        started_at=run.now,
        finished_at=run.now,
    )


def _known(table: str, policy: PolicyFile) -> tuple[str, Sequence[Operation]]:
    """Format and operations, as far as they are known of a table that may have left the policy meanwhile."""
    try:
        effective = policy.effective(table)
    except UsageError:
        kind = {each.name: each.format for each in policy.unusable}.get(table, format_of(table))
        return kind, suited(kind)
    return effective.address.format, effective.operations


def _index(history: History, pages: Container[str], now: datetime) -> str:
    def page_of(document: RunDocument) -> str | None:
        name = page_name(document.run_id.removesuffix(f":{document.table}"))
        return name if name in pages else None

    return render_index(
        history.documents,
        title="Nightkeep",
        generated_at=now,
        page_of=page_of,
        unreadable=history.unreadable,
        older=history.older,
    )
