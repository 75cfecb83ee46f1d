"""Results in Great Expectations' own format <-> a file beside each run's document, and the pages made from them.

<reports>/<table>/expectations/<run id>-<operation>.json   a list of validations, of suites in the order they were asked
<reports>/pages/data-docs/<table>-<run id>-<operation>-<n>.html
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nightkeep.errors import CorruptMetadata
from nightkeep.records.document import RunDocument
from nightkeep.records.file_names import document_name, slug
from nightkeep.records.json_files import read_json
from nightkeep.records.places import absolute, report_store
from nightkeep.records.stored_pages import write_below
from nightkeep.redaction import redacted

Validation = Mapping[str, Any]
RESULTS_OF_RUNS = "expectations"
"""The folder of results, in that of a table's documents."""
DATA_DOCS = "data-docs"
"""The folder of Data Docs, below that of the pages."""


def keep_validations(document: RunDocument, validations: Sequence[Validation], reports: str | Path) -> RunDocument:
    """The document with the path of the file that holds the validations, or with the reason why there is none."""
    if not validations:
        return document
    store, name = report_store(reports), _name(document)
    try:
        text = json.dumps(redacted(_plain(list(validations))), indent=1, allow_nan=False, default=str)
        store.write(name, f"{text}\n".encode())
        kept = replace(document.expectations, docs=absolute(store.address(name)))
    except OSError as failure:
        why = f"the results cannot be written in Great Expectations' format: {failure.strerror or failure}"
        kept = replace(document.expectations, reason="; ".join(filter(None, [document.expectations.reason, why])))
    return replace(document, expectations=kept)


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
