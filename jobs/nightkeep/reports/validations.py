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
from nightkeep.redaction import redacted
from nightkeep.reports.document import RunDocument
from nightkeep.reports.file_names import slug
from nightkeep.reports.json_files import read_json
from nightkeep.reports.store import document_path, replace_file

Validation = Mapping[str, Any]
DATA_DOCS = "data-docs"
"""The folder of Data Docs, below that of the pages."""


def keep_validations(document: RunDocument, validations: Sequence[Validation], reports_dir: str | Path) -> RunDocument:
    """The document with the path of the file that holds the validations, or with the reason why there is none."""
    if not validations:
        return document
    path = _path(document, reports_dir)
    try:
        text = json.dumps(redacted(_plain(list(validations))), indent=1, allow_nan=False, default=str)
        kept = replace(document.expectations, docs=str(replace_file(path, text + "\n").absolute()))
    except OSError as failure:
        why = f"the results cannot be written in Great Expectations' format: {failure.strerror or failure}"
        kept = replace(document.expectations, reason="; ".join(filter(None, [document.expectations.reason, why])))
    return replace(document, expectations=kept)


def read_validations(document: RunDocument, reports_dir: str | Path) -> tuple[Validation, ...]:
    """What was kept for the document, wherever the reports folder is now; nothing if nothing was.

    Raises CorruptMetadata, naming the file, for one that holds no validations.
    """
    path = _path(document, reports_dir)
    try:
        held = read_json(path)
    except FileNotFoundError:
        return ()
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise CorruptMetadata(str(path), "a list of validations", type(held).__name__)
    return tuple(held)


def docs_page_name(document: RunDocument, number: int) -> str:
    """The name of the page of one validation of a document, without its ending."""
    return f"{slug(f'{document.table}-{document.run_id}-{document.operation}')}-{number}"


def write_docs_page(folder: str | Path, name: str, html: str) -> Path:
    """Write or replace a page of Data Docs below the folder of pages."""
    return replace_file(Path(folder) / "pages" / DATA_DOCS / f"{name}.html", html)


def _path(document: RunDocument, reports_dir: str | Path) -> Path:
    beside = document_path(reports_dir, document.table, run_id=document.run_id, operation=document.operation)
    return beside.parent / "expectations" / beside.name


def _plain(value: Any) -> Any:
    """The value without numbers that JSON has not: shares of no rows at all."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
