"""Settled results and their documents -> the page of a run, and the pages over all runs.

Every table of the run is on its page, also a table without a document.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from nightkeep.errors import UsageError
from nightkeep.model import Operation, Outcome
from nightkeep.nights.overview import links_to, overview_of, table_pages_in, write_overview
from nightkeep.nights.settled import Settled
from nightkeep.nights.settled_documents import documents_of
from nightkeep.nights.value_pages import write_value_pages
from nightkeep.pages import Attention, Overview, attention_of, render_run
from nightkeep.policy import PolicyFile, format_of, suited
from nightkeep.records import RunDocument, page_name, pages_in, store_if_absent, write_page
from nightkeep.records.failure_outcomes import unreported_as_failed
from nightkeep.records.file_names import table_page_name
from nightkeep.records.kept_index import indexed, keep_index


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
    """Write the run's page, and those over all runs. Returns the address of the run's page.

    A table with nothing to do keeps the page that it has."""
    read_ns = time.time_ns()
    stored = documents_of(results, reports, run.prefix)
    documents = [document for result in results for document in _documents(result, stored, run, policy)]
    history = keep_index(reports, prefix=run.prefix, documents=stored.values(), read_ns=read_ns)
    overview, there = overview_of(reports, history, policy), table_pages_in(reports)
    known = {document.table for document in history.documents}
    changed = [
        each.table
        for each in results
        if each.table in known and (each.outcome is not Outcome.UNCHANGED or table_page_name(each.table) not in there)
    ]
    pages, table_pages = pages_in(reports) | {page_name(run.prefix)}, there | set(map(table_page_name, changed))
    values = write_value_pages(documents, reports=reports, folder=reports, now=run.now)
    html = render_run(
        documents,
        title=run.title,
        generated_at=run.now,
        links=replace(links_to(pages, table_pages), values=values),
        attention=attention_in(overview, documents),
    )
    page = write_page(reports, run.prefix, html)
    write_overview(
        reports, overview, now=run.now, pages=pages, table_pages=table_pages, tables=changed, reports=reports
    )
    return page


def attention_in(overview: Overview, documents: Sequence[RunDocument]) -> tuple[Attention, ...]:
    """What needs a person of the tables of a run, by what was known of them at its end, and the holds that stand."""
    until = max((document.finished_at for document in documents), default=None)
    tables, own = {document.table for document in documents}, {*map(_name, documents)}
    before = [
        each
        for each in overview.history
        if until is not None and each.table in tables and each.finished_at <= until and _name(each) not in own
    ]
    holds = {table: hold for table, hold in overview.holds.items() if table in tables}
    return attention_of([*before, *documents], holds)


def _name(document: RunDocument) -> tuple[str, str, Operation]:
    return document.run_id, document.table, document.operation


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
