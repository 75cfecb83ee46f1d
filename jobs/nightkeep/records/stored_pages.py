"""Pages -> files below the folder of pages, and what is there."""

from __future__ import annotations

from pathlib import Path

from nightkeep.errors import EvidenceError
from nightkeep.records.file_names import PAGES, page_name
from nightkeep.records.places import report_store
from nightkeep.records.store import bytes_of, why_not


def write_page(reports: str | Path, name: str, html: str) -> str:
    """Write or replace a page and return its address. Raises EvidenceError if it cannot be written."""
    return write_below(reports, page_name(name), html)


def write_below(reports: str | Path, name: str, html: str) -> str:
    """Write or replace a file below the folder of pages and return its address. Raises EvidenceError."""
    store, name = report_store(reports), f"{PAGES}/{name}"
    try:
        store.write(name, bytes_of(html))
    except OSError as failure:
        raise EvidenceError(store.address(name), "a page that can be written", why_not(failure)) from failure
    return store.address(name)


def pages_in(reports: str | Path, folder: str = "") -> frozenset[str]:
    """The names of the files in the folder of pages, or in a folder below it."""
    return frozenset(each.name for each in report_store(reports).list(f"{PAGES}/{folder}".rstrip("/")))
