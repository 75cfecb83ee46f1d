"""nightkeep.explain, history, report and release: policies and stored documents -> text, pages, released holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote

from nightkeep.api.call_context import CallContext, find_context, parse_duration_option
from nightkeep.api.chosen_history import HistoryChoice, parse_choice
from nightkeep.api.results import Explanation, Pages, Release, RunHistory
from nightkeep.errors import UsageError
from nightkeep.nights.overview import links_to, overview_of, write_overview
from nightkeep.nights.run_pages import attention_in
from nightkeep.nights.value_pages import write_value_pages
from nightkeep.pages import Overview, is_counted, render_run, run_name
from nightkeep.places import is_address, report_store, reports_place
from nightkeep.records import (
    History,
    RunDocument,
    has_documents,
    page_name,
    pages_in,
    read_history,
    read_thread,
    write_page,
)
from nightkeep.records.chosen_documents import chosen_documents, read_all
from nightkeep.records.file_names import table_page_name
from nightkeep.records.kept_index import remove_index
from nightkeep.records.releases import account, release_table, releases_of, with_release
from nightkeep.records.validations import (
    DATA_DOCS,
    YOUNGEST_MS,
    docs_page_name,
    forget_pages,
    forget_results,
    read_validations,
    write_docs_page,
)
from nightkeep.running.inspection.handled_operations import handled_operations

_INDEX: Final = "index"
_SHOWN_RUNS: Final = 20
"""How many runs of all tables are shown where nobody asks for more: some weeks of nights."""
_MOST_RUNS: Final = 200
"""How many runs have pages, the newest: Great Expectations renders a few pages a second."""


def explain(table: str, *, policy: str | Path | None = None) -> Explanation:
    """The policy in force for a table, the line that each value comes from, and what each operation refuses of it."""
    chosen = find_context(policy, None).chosen(table)
    return Explanation(chosen, handled_operations(chosen))


def history(
    table: str | None = None,
    *,
    since: str | None = None,
    last: int | None = None,
    failed: bool = False,
    operation: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
) -> RunHistory:
    """The documents of a table, also under its earlier names, or of all tables, oldest first.

    `since`: a date in UTC, or an age such as 7d. `last`: of so many of the newest runs. `failed`: those that ended in
    mismatch, failed or conflicted, or whose check did not pass. Raises UsageError for an invalid argument.
    """
    choice = parse_choice(since, last, operation, failed=failed, now=datetime.now(UTC))
    return _chosen_history(find_context(policy, reports), table, choice, read_all)


def shown_history(
    table: str | None = None,
    *,
    since: str | None = None,
    last: int | None = None,
    failed: bool = False,
    operation: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
) -> RunHistory:
    """As `history`, for people: of all tables the newest runs alone where nothing else is asked for. What is only
    counted, as it changed nothing, is as brief as the index has it, so that no document of it is read."""
    choice = parse_choice(since, last, operation, failed=failed, now=datetime.now(UTC))
    limit = None if table is not None or choice.is_of_few or choice.operation is not None else _SHOWN_RUNS
    shown = replace(choice, limit=limit)
    found = _chosen_history(find_context(policy, reports), table, shown, lambda each: not is_counted(each))
    return replace(found, limit=limit if found.has_runs(limit) else None)


def _chosen_history(
    context: CallContext, table: str | None, choice: HistoryChoice, is_read: Callable[[RunDocument], bool]
) -> RunHistory:
    name = None if table is None else _reported_name(context, table)
    stored = _history_of_all(context.reports, choice, is_read) if name is None else read_thread(context.reports, name)
    releases = releases_of(context.reports, dict.fromkeys(document.table for document in stored.documents))
    documents = (with_release(each, releases.get(each.table, ())) for each in choice.of(stored.documents))
    listed = sorted((each for some in releases.values() for each in some), key=lambda each: each.at)
    return RunHistory(
        tuple(documents), stored.unreadable, tuple(each for each in listed if choice.has_releases_of(each.at))
    )


def _history_of_all(reports: str, choice: HistoryChoice, is_read: Callable[[RunDocument], bool]) -> History:
    """The documents of all tables, or where a few are asked for only these, if the index knows which they are."""
    few = chosen_documents(reports, choice.of, choice.bound, is_read) if choice.is_of_few else None
    return read_history(reports) if few is None else few


def release(
    table: str, *, reason: str | None = None, policy: str | Path | None = None, reports: str | Path | None = None
) -> Release:
    """Release a table from the hold that a failed check put on it. Who did so, when and for what `reason` is kept."""
    context = find_context(policy, reports)
    name = _reported_name(context, table)
    done = release_table(context.reports, name, user=account(), at=datetime.now(UTC), reason=reason)
    return Release(name, None) if done is None else Release(name, done.hold, done.released, done.unkept)


def report(
    *,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    out: str | Path | None = None,
    data_docs: bool = False,
    forget: str | None = None,
) -> Pages:
    """Write a page for each run and the index, to the folder `out` or, by default, beside the documents.

    `data_docs`: also the pages of Great Expectations, from the results that were kept; they load nothing. `forget`:
    remove results that are older than this, such as 90d, and those of documents that are gone.
    """
    context, now = find_context(policy, reports), datetime.now(UTC)
    if not report_store(context.reports).exists():
        raise UsageError(f"{context.reports}: expected a folder of reports, found none")
    if forget is not None:
        forget_results(context.reports, older_than_ms=_age("--forget", forget))
    # What was copied in or removed by hand is in no bundle.
    remove_index(context.reports)
    stored = read_history(context.reports)
    documents, folder = stored.documents, reports_place(out or context.reports)
    docs = _build_data_docs(documents, context.reports, folder) if data_docs else None
    linked, by_run = _docs_pages(documents, folder), dict[str, list[RunDocument]]()
    for document in documents:
        by_run.setdefault(run_name(document), []).append(document)
    overview, tables = overview_of(context.reports, stored, context.policy), {each.table for each in documents}
    names, of_tables = frozenset(map(page_name, by_run)), frozenset(map(table_page_name, tables))
    docs_index, pages = _docs_index(folder), dict[str, str]()
    values = write_value_pages(documents[-_MOST_RUNS:], reports=context.reports, folder=folder, now=now)
    links, part = replace(links_to(names, of_tables, docs_index), values=values), _by_table(overview)
    for name, mine in by_run.items():
        needs = attention_in(part(mine), mine)
        html = render_run(mine, title=name, generated_at=now, docs_pages=linked, links=links, attention=needs)
        pages[name] = write_page(folder, name, html)
    written = write_overview(
        folder,
        overview,
        now=now,
        pages=names,
        table_pages=of_tables,
        tables=tables,
        docs_index=docs_index,
        reports=context.reports,
    )
    runs = tuple(map(_shown, pages.values()))
    return Pages(_shown(written), runs, stored.unreadable, None if docs is None else _shown(docs))


def _by_table(overview: Overview) -> Callable[[Sequence[RunDocument]], Overview]:
    """The part of the overview that is of the tables of a run."""
    by_table: dict[str, list[RunDocument]] = {}
    for document in overview.history:
        by_table.setdefault(document.table, []).append(document)

    def part(run: Sequence[RunDocument]) -> Overview:
        tables = dict.fromkeys(document.table for document in run)
        return replace(overview, history=[each for table in tables for each in by_table[table]])

    return part


def _age(option: str, text: str) -> int:
    age = parse_duration_option(option, text)
    if age < YOUNGEST_MS:
        raise UsageError(f"{option}: expected at least 24h, as runs may still write what is younger, found {text!r}")
    return age


def _shown(address: str) -> Path | str:
    return address if is_address(address) else Path(address)


def _reported_name(context: CallContext, table: str) -> str:
    """The table's name in reports. A table that has documents need not be there any more, nor be looked for."""
    try:
        return context.policy.effective(table).address.name
    except UsageError:
        return table if has_documents(context.reports, table) else context.chosen(table).address.name


def _build_data_docs(documents: Sequence[RunDocument], reports: str, folder: str) -> str:
    """Write the pages of the newest runs with results, oldest first, and the index over them. Returns the index.

    Beside the documents, pages of older runs are removed.
    """
    from nightkeep.checking.data_docs import docs_page, framed  # noqa: PLC0415 -- Great Expectations

    lines, names = [], set[str]()
    for document in [each for each in documents if each.expectations.docs][-_MOST_RUNS:]:
        for number, validation in enumerate(read_validations(document, reports), 1):
            name, suite = docs_page_name(document, number), str(validation.get("suite_name"))
            names.add(name)
            title = f"{document.table}, {document.operation}, {document.run_id}: {suite}"
            html = docs_page(
                validation, run_id=document.run_id, started_at=document.started_at, title=title, back=_back(document)
            )
            write_docs_page(folder, name, html)
            word = "passed" if validation.get("success") else "not passed"
            lines.append(f'<li><a href="{escape(quote(name))}.html">{escape(title)}</a>, {word}</li>')
    if folder == reports:
        forget_pages(reports, names)
    body = f"<h1>Data Docs</h1><ul>{''.join(reversed(lines))}</ul>" if lines else "<p>No run has left results yet.</p>"
    page = framed(f"<html><head></head><body>{body}</body></html>", "Data Docs", back={"All runs": "../index.html"})
    return write_docs_page(folder, _INDEX, page)


def _back(document: RunDocument) -> dict[str, str]:
    """Links from a page of Data Docs to the pages that lead to it."""
    return {
        "Run": f"../{quote(page_name(run_name(document)))}",
        "Table": f"../{quote(table_page_name(document.table))}",
        "All runs": "../index.html",
    }


def _docs_index(folder: str) -> str | None:
    """The link to the index of Data Docs from the index of runs; None if none was written."""
    return f"{DATA_DOCS}/{_INDEX}.html" if f"{_INDEX}.html" in pages_in(folder, DATA_DOCS) else None


def _docs_pages(documents: Sequence[RunDocument], folder: str) -> dict[str, str]:
    """The link to the page of each document's last validation, by where its results are; only of pages that exist."""
    there, pages = pages_in(folder, DATA_DOCS), {}
    for document in documents:
        names = [docs_page_name(document, number) for number in (1, 2, 3, 4)]
        found = [name for name in names if f"{name}.html" in there]
        if document.expectations.docs and found:
            pages[document.expectations.docs] = f"{DATA_DOCS}/{found[-1]}.html"
    return pages
