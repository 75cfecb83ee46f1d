"""Documents of runs -> the pages of Great Expectations' Data Docs, from the results kept beside them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from nightkeep.records import RunDocument, pages_in
from nightkeep.records.validations import DATA_DOCS, docs_page_name, forget_pages, read_validations, write_docs_page

INDEX = "index"
MOST_RUNS = 200
"""How many runs have pages, the newest: Great Expectations renders a few pages a second."""


def build_data_docs(documents: Sequence[RunDocument], reports: str, folder: str) -> str:
    """Write the pages of the newest runs with results, oldest first, and the index over them. Returns the index.

    Beside the documents, pages of older runs are removed.
    """
    from nightkeep.checking.data_docs import docs_page, framed  # noqa: PLC0415 -- Great Expectations

    lines, names = [], set[str]()
    for document in [each for each in documents if each.expectations.docs][-MOST_RUNS:]:
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
    return write_docs_page(folder, INDEX, page)


def docs_index(folder: str) -> str | None:
    """The link to the index of Data Docs from the index of runs; None if none was written."""
    return f"{DATA_DOCS}/{INDEX}.html" if f"{INDEX}.html" in pages_in(folder, DATA_DOCS) else None


def docs_pages(documents: Sequence[RunDocument], folder: str) -> dict[str, str]:
    """The link to the page of each document's last validation, by where its results are; only of pages that exist."""
    there, pages = pages_in(folder, DATA_DOCS), {}
    for document in documents:
        names = [docs_page_name(document, number) for number in (1, 2, 3, 4)]
        found = [name for name in names if f"{name}.html" in there]
        if document.expectations.docs and found:
            pages[document.expectations.docs] = f"{DATA_DOCS}/{found[-1]}.html"
    return pages
