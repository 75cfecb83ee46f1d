"""The history of a place of reports -> its index, the page of its fleet, and pages of its tables, written.

Links lead both ways between index, fleet, tables and runs, and only to pages that are there. A page that cannot be
written is an error of its own, as those before it stand: all of them are written anew by the next run.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from datetime import datetime
from functools import partial
from pathlib import Path

from nightkeep.model import Operation
from nightkeep.pages import Links, Overview, render_fleet, render_index, render_table, run_name
from nightkeep.places import report_store
from nightkeep.policy import PolicyFile
from nightkeep.records import History, RunDocument, page_name, pages_in, write_page
from nightkeep.records.audit_marks import audit_mark
from nightkeep.records.file_names import TABLE_PAGES, table_page_name
from nightkeep.records.holds import standing_holds
from nightkeep.records.json_files import side_by_side
from nightkeep.records.store import write_below

INDEX, FLEET = "index", "fleet"
_UP = "../"


def overview_of(reports: str, history: History, policy: PolicyFile) -> Overview:
    """What the pages over all runs are made of. Reads the holds that stand."""
    tables = dict.fromkeys(document.table for document in history.documents)
    return Overview(
        history.documents, standing_holds(reports, tables), history.unreadable, history.older, policy.prices
    )


def links_to(pages: Container[str], table_pages: Container[str], docs_index: str | None = None, up: str = "") -> Links:
    """The links of a page to these others. `up` leads from its folder to that of all pages."""

    def of_run(document: RunDocument) -> str | None:
        name = page_name(run_name(document))
        return f"{up}{name}" if name in pages else None

    def of_table(table: str) -> str | None:
        name = table_page_name(table)
        return f"{up}{name}" if name in table_pages else None

    return Links(
        of_run,
        of_table,
        f"{up}{page_name(INDEX)}",
        f"{up}{page_name(FLEET)}",
        None if docs_index is None else f"{up}{docs_index}",
    )


def table_pages_in(folder: str | Path) -> frozenset[str]:
    """The pages of tables that are there, as `table_page_name` names them."""
    return frozenset(f"{TABLE_PAGES}/{name}" for name in pages_in(folder, TABLE_PAGES))


def write_overview(
    folder: str,
    overview: Overview,
    *,
    now: datetime,
    pages: Container[str],
    table_pages: Collection[str],
    tables: Collection[str],
    docs_index: str | None = None,
    reports: str,
) -> str:
    """Write the pages of these tables, the fleet and the index. Returns the address of the index. `pages`: those of
    runs that are there, `table_pages`: those of tables, with those that are written here. `reports`: the place of the
    documents, which has the marks of audits."""
    below = links_to(pages, table_pages, docs_index, _UP)
    by_table: dict[str, list[RunDocument]] = {table: [] for table in tables}
    for document in overview.history:
        if document.table in by_table:
            by_table[document.table].append(document)
    write = partial(_write_table, folder, reports, overview, below, now, by_table)
    for _ in side_by_side(report_store(folder), write, [table for table, some in by_table.items() if some]):
        pass
    links = links_to(pages, table_pages, docs_index)
    write_page(folder, FLEET, render_fleet(overview, generated_at=now, links=links))
    return write_page(folder, INDEX, render_index(overview, title="Nightkeep", generated_at=now, links=links))


def _write_table(
    folder: str,
    reports: str,
    overview: Overview,
    links: Links,
    now: datetime,
    by_table: dict[str, list[RunDocument]],
    table: str,
) -> None:
    holds = {table: overview.holds[table]} if table in overview.holds else {}
    audited = any(each.operation is Operation.AUDIT for each in by_table[table])
    mark = audit_mark(reports, table) if audited else None
    commits = () if mark is None else mark.commits
    own = Overview(by_table[table], holds, older=overview.older, prices=overview.prices, commits=commits)
    write_below(folder, table_page_name(table), render_table(table, own, generated_at=now, links=links))
