"""Values of rows that a run found, where the policy asks for them <-> a file of their own, apart from the documents.

<reports>/~values/<table>/<run id>-<operation>.json       what `RowValues` has
<reports>/pages/~values/<table>/<run id>-<operation>.html  the page made of it

Documents, results of expectations and all other pages hold no value of a row, whatever the policy asks for. So one rule
separates who may see values from who may see reports: a path with a part VALUES. Airflow's plugin has it, and so may a
web server or a bucket.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final

from nightkeep.model import Operation
from nightkeep.places import report_store
from nightkeep.records.check_report import UnitDifference
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra, RunDocument
from nightkeep.records.file_names import PAGES, VALUES, document_name
from nightkeep.records.json_files import read_json
from nightkeep.records.store import bytes_of, joined, why_not
from nightkeep.records.validations import writable

KEPT: Final = "values"
"""The key of a document's `extra` that has the name of the file, below the place of reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """The rows that differ, by unit, and results in Great Expectations' own format that show values of rows."""

    table: str
    run_id: str
    operation: Operation
    differences: tuple[UnitDifference, ...] = ()
    validations: tuple[Mapping[str, object], ...] = ()
    extra: Extra = field(default_factory=dict)


def values_name(document: RunDocument) -> str:
    """The file of the values that a run found, below the place of reports."""
    return f"{VALUES}/{document_name(document.table, run_id=document.run_id, operation=document.operation)}"


def values_page_name(document: RunDocument) -> str:
    """The page of the same values, in the folder of pages."""
    return f"{values_name(document).removesuffix('.json')}.html"


def files_of_values(document: RunDocument) -> tuple[str, ...]:
    """The file and its page, below the place of reports; none for a document that has no values."""
    return (values_name(document), f"{PAGES}/{values_page_name(document)}") if KEPT in document.extra else ()


def shows_values(name: str) -> bool:
    """Whether a name below the place of reports is of values of rows. In doubt it is: a name that leads back may lead
    to them, and some file systems ignore case."""
    parts = PurePosixPath(name).parts
    return ".." in parts or any(part.casefold() == VALUES for part in parts)


def keep_values(
    document: RunDocument,
    reports: str | Path,
    *,
    differences: tuple[UnitDifference, ...] = (),
    validations: tuple[Mapping[str, object], ...] = (),
) -> RunDocument:
    """The document with the name of the file that has these values, or with the reason why there is none. Nothing is
    written without values."""
    if not differences and not validations:
        return document
    found = RowValues(
        table=document.table,
        run_id=document.run_id,
        operation=document.operation,
        differences=differences,
        validations=validations,
    )
    name = values_name(document)
    try:
        text = json.dumps(writable(encode(found)), indent=1, allow_nan=False, default=str)
        report_store(reports).write(name, bytes_of(f"{text}\n"))
    except OSError as failure:
        why = f"the values of rows cannot be written: {why_not(failure)}"
        checked = document.expectations
        return replace(document, expectations=replace(checked, reason=joined(checked.reason, why)))
    return replace(document, extra={**document.extra, KEPT: name})


def read_values(document: RunDocument, reports: str | Path) -> RowValues | None:
    """What was kept for the document; None if nothing was, or if it is gone.

    Raises CorruptMetadata, naming the file, for one that holds no values of rows.
    """
    if KEPT not in document.extra:
        return None
    store, name = report_store(reports), values_name(document)
    try:
        return decode(RowValues, read_json(store, name), store.address(name))
    except FileNotFoundError:
        return None
