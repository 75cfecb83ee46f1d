"""Results of Great Expectations, and their pages, that nobody reads any more -> removed, one file at a time.

Documents stay: they are a table's history. Nothing young is removed, as another machine may be writing beside it, and
nothing through a link, as it may lead out of the place of reports.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.records.file_names import NO_TABLES, PAGES
from nightkeep.records.places import is_address, report_store
from nightkeep.records.validations import DATA_DOCS, RESULTS_OF_RUNS
from nightkeep.storage.kept import KeptFiles

YOUNGEST_MS: Final = DAY_MS
"""A younger file is never removed. A run takes hours, not days."""
_PAGE: Final = re.compile(r".+-[0-9]+\.html")


def forget_results(reports: str | Path, *, older_than_ms: int) -> int:
    """Remove results that are older, and those whose document is gone. Returns how many files that were."""
    store, removed = report_store(reports), 0
    for table in store.folders():
        if table not in NO_TABLES and _is_own(store, f"{table}/{RESULTS_OF_RUNS}"):
            # Results are listed first: a document is there before its results are.
            old = list(_files(store, f"{table}/{RESULTS_OF_RUNS}", ".json", YOUNGEST_MS))
            older = {name for name, age_ms in old if age_ms > older_than_ms}
            documents = {each.name for each in store.list(table)}
            gone = [name for name, _ in old if name in older or name not in documents]
            removed += sum(_removed(store, f"{table}/{RESULTS_OF_RUNS}/{name}") for name in gone)
    return removed


def forget_pages(reports: str | Path, kept: Collection[str]) -> None:
    """Remove pages of Data Docs other than those of the names `kept`, which the index lists."""
    store, folder = report_store(reports), f"{PAGES}/{DATA_DOCS}"
    for name, _ in _files(store, folder, ".html", YOUNGEST_MS) if _is_own(store, folder) else ():
        if _PAGE.fullmatch(name) and name.removesuffix(".html") not in kept:
            _removed(store, f"{folder}/{name}")


def _files(store: KeptFiles, folder: str, ending: str, least_ms: int) -> Iterator[tuple[str, int]]:
    """Names and ages, in milliseconds, of files that are at least so old."""
    now_ms = time.time_ns() // 1_000_000
    for each in store.list(folder):
        age_ms = now_ms - each.modified_ns // 1_000_000
        if each.name.endswith(ending) and not each.name.startswith(".") and age_ms > least_ms:
            yield each.name, age_ms


def _is_own(store: KeptFiles, folder: str) -> bool:
    """Whether a folder is where its name says. A bucket has no links."""
    address = store.address(folder)
    return is_address(address) or os.path.realpath(address) == os.path.join(os.path.realpath(store.root), folder)


def _removed(store: KeptFiles, name: str) -> bool:
    with suppress(OSError):
        return store.remove(name, read=None)
    return False
