"""nightkeep.explain, history, report and release: policies and stored documents -> text, pages, released holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote

from nightkeep.api.call_context import CallContext, find_context, parse_duration_option
from nightkeep.api.chosen_history import parse_choice
from nightkeep.api.results import Explanation, Pages, Release, RunHistory
from nightkeep.errors import UsageError
from nightkeep.pages import render_index, render_run
from nightkeep.places import is_address, report_store, reports_place
from nightkeep.records import RunDocument, has_documents, page_name, pages_in, read_history, read_thread, write_page
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
    context = find_context(policy, reports)
    name = None if table is None else _reported_name(context, table)
    stored = read_history(context.reports) if name is None else read_thread(context.reports, name)
    releases = releases_of(context.reports, dict.fromkeys(document.table for document in stored.documents))
    documents = (with_release(each, releases.get(each.table, ())) for each in choice.of(stored.documents))
    listed = sorted((each for some in releases.values() for each in some), key=lambda each: each.at)
    return RunHistory(
        tuple(documents), stored.unreadable, tuple(each for each in listed if choice.has_releases_of(each.at))
    )


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
    linked, pages = _docs_pages(documents, folder), dict[str, str]()
    for name in dict.fromkeys(map(_run_name, documents)):
        mine = [document for document in documents if _run_name(document) == name]
        pages[name] = write_page(folder, name, render_run(mine, title=name, generated_at=now, docs_pages=linked))
    index = render_index(
        documents,
        title="Nightkeep",
        generated_at=now,
        page_of=lambda d: page_name(_run_name(d)),
        unreadable=stored.unreadable,
        docs_index=_docs_index(folder),
    )
    runs = tuple(map(_shown, pages.values()))
    written = write_page(folder, "index", index)
    return Pages(_shown(written), runs, stored.unreadable, None if docs is None else _shown(docs))


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


def _run_name(document: RunDocument) -> str:
    """The common name of the documents of one run over several tables: the run id without the table at its end."""
    return document.run_id.removesuffix(f":{document.table}")


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
            html = docs_page(validation, run_id=document.run_id, started_at=document.started_at, title=title)
            write_docs_page(folder, name, html)
            word = "passed" if validation.get("success") else "not passed"
            lines.append(f'<li><a href="{escape(quote(name))}.html">{escape(title)}</a>, {word}</li>')
    if folder == reports:
        forget_pages(reports, names)
    body = f"<h1>Data Docs</h1><ul>{''.join(reversed(lines))}</ul>" if lines else "<p>No run has left results yet.</p>"
    page = framed(f"<html><head></head><body>{body}</body></html>", "Data Docs")
    return write_docs_page(folder, _INDEX, page)


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
