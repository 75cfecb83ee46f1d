"""Results in Great Expectations' own format <-> a file beside each run's document, and the pages made from them.

<reports>/<table>/expectations/<run id>-<operation>.json   a list of validations, of suites in the order they were asked
<reports>/pages/data-docs/<table>-<run id>-<operation>-<n>.html

Results and pages that nobody reads any more are removed, one file at a time. Documents stay: they are a table's
history. Nothing young is removed, as another machine may be writing beside it, and nothing through a link, as it may
lead out of the place of reports.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.places import absolute, is_address, report_store
from nightkeep.records.document import RunDocument
from nightkeep.records.file_names import NO_TABLES, PAGES, VALUES, document_name, slug
from nightkeep.records.json_files import read_json
from nightkeep.records.store import write_below
from nightkeep.redaction import redacted
from nightkeep.storage.kept import KeptFiles

Validation = Mapping[str, Any]
RESULTS_OF_RUNS = "expectations"
"""The folder of results, in that of a table's documents."""
DATA_DOCS = "data-docs"
"""The folder of Data Docs, below that of the pages."""
YOUNGEST_MS: Final = DAY_MS
"""A younger file is never removed. A run takes hours, not days."""
_PAGE: Final = re.compile(r".+-[0-9]+\.html")


def keep_validations(document: RunDocument, validations: Sequence[Validation], reports: str | Path) -> RunDocument:
    """The document with the path of the file that holds the validations, or with the reason why there is none."""
    if not validations:
        return document
    store, name = report_store(reports), _name(document)
    try:
        text = json.dumps([*map(writable, validations)], indent=1, allow_nan=False, default=str)
        store.write(name, f"{text}\n".encode())
        kept = replace(document.expectations, docs=absolute(store.address(name)))
    except OSError as failure:
        why = f"the results cannot be written in Great Expectations' format: {failure.strerror or failure}"
        kept = replace(document.expectations, reason="; ".join(filter(None, [document.expectations.reason, why])))
    return replace(document, expectations=kept)


def writable(validation: Validation) -> Validation:
    """The validation without credentials and without numbers that JSON has not."""
    found: Validation = redacted(_plain(validation))
    return found


def read_validations(document: RunDocument, reports: str | Path) -> tuple[Validation, ...]:
    """What was kept for the document, wherever the reports folder is now; nothing if nothing was.

    Raises CorruptMetadata, naming the file, for one that holds no validations.
    """
    store, name = report_store(reports), _name(document)
    try:
        held = read_json(store, name)
    except FileNotFoundError:
        return ()
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise CorruptMetadata(store.address(name), "a list of validations", type(held).__name__)
    return tuple(held)


def docs_page_name(document: RunDocument, number: int) -> str:
    """The name of the page of one validation of a document, without its ending."""
    return f"{slug(f'{document.table}-{document.run_id}-{document.operation}')}-{number}"


def write_docs_page(reports: str | Path, name: str, html: str) -> str:
    """Write or replace a page of Data Docs below the folder of pages."""
    return write_below(reports, f"{DATA_DOCS}/{name}.html", html)


def _name(document: RunDocument) -> str:
    folder, _, name = document_name(document.table, run_id=document.run_id, operation=document.operation).partition("/")
    return f"{folder}/{RESULTS_OF_RUNS}/{name}"


def _plain(value: Any) -> Any:
    """The value without numbers that JSON has not: shares of no rows at all."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def forget_results(reports: str | Path, *, older_than_ms: int) -> int:
    """Remove results and values of rows that are older, and those without a document. Returns how many files were
    removed."""
    store, removed = report_store(reports), 0
    for table in [each for each in store.folders() if each not in NO_TABLES]:
        for folder in (f"{table}/{RESULTS_OF_RUNS}", f"{VALUES}/{table}", f"{PAGES}/{VALUES}/{table}"):
            removed += _forget_in(store, folder, table, older_than_ms) if is_own_folder(store, folder) else 0
    return removed


def _forget_in(store: KeptFiles, folder: str, table: str, older_than_ms: int) -> int:
    """Remove from a folder what is named as documents of the table are, but for the ending."""
    # This folder is listed first: a document is there before its results are.
    old = [each for ending in (".json", ".html") for each in _files(store, folder, ending, YOUNGEST_MS)]
    documents = {each.name.removesuffix(".json") for each in store.list(table) if each.name.endswith(".json")}
    gone = [n for n, age_ms in old if age_ms > older_than_ms or n.rpartition(".")[0] not in documents]
    return sum(_removed(store, f"{folder}/{name}") for name in gone)


def forget_pages(reports: str | Path, kept: Collection[str]) -> None:
    """Remove pages of Data Docs other than those of the names `kept`, which the index lists."""
    store, folder = report_store(reports), f"{PAGES}/{DATA_DOCS}"
    for name, _ in _files(store, folder, ".html", YOUNGEST_MS) if is_own_folder(store, folder) else ():
        if _PAGE.fullmatch(name) and name.removesuffix(".html") not in kept:
            _removed(store, f"{folder}/{name}")


def _files(store: KeptFiles, folder: str, ending: str, least_ms: int) -> Iterator[tuple[str, int]]:
    """Names and ages, in milliseconds, of files that are at least so old."""
    now_ms = time.time_ns() // 1_000_000
    for each in store.list(folder):
        age_ms = now_ms - each.modified_ns // 1_000_000
        if each.name.endswith(ending) and not each.name.startswith(".") and age_ms > least_ms:
            yield each.name, age_ms


def is_own_folder(store: KeptFiles, folder: str) -> bool:
    """Whether a folder is where its name leads. A bucket has no links."""
    address = store.address(folder)
    return is_address(address) or os.path.realpath(address) == os.path.join(os.path.realpath(store.root), folder)


def _removed(store: KeptFiles, name: str) -> bool:
    with suppress(OSError):
        return store.remove(name, read=None)
    return False
