"""Documents of runs that kept values of rows -> a page for each, below a folder of its own, and the links to them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from urllib.parse import quote

from nightkeep.errors import CorruptMetadata
from nightkeep.pages import render_row_values, run_name
from nightkeep.pages.templating import PageOf
from nightkeep.records import RunDocument, page_name
from nightkeep.records.file_names import table_page_name
from nightkeep.records.row_values import KEPT, read_values, values_page_name
from nightkeep.records.store import write_below

_UP = "../../"


def write_value_pages(documents: Iterable[RunDocument], *, reports: str, folder: str, now: datetime) -> PageOf:
    """Write the pages into the folder of pages of `folder`. Returns the link from a page of a run to them; None for a
    document without values, or whose values are gone or damaged. Raises EvidenceError for a page that cannot be
    written."""
    links: dict[str, str] = {}
    for document in documents:
        with suppress(CorruptMetadata):
            if KEPT in document.extra and (values := read_values(document, reports)) is not None:
                html = render_row_values(
                    values,
                    generated_at=now,
                    run=f"{_UP}{quote(page_name(run_name(document)))}",
                    table=f"{_UP}{quote(table_page_name(document.table))}",
                )
                name = values_page_name(document)
                write_below(folder, name, html)
                links[name] = quote(name)
    return lambda document: links.get(values_page_name(document))
