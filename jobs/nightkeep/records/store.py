"""Documents <-> files below a place of reports: a folder, or a prefix of a bucket. A file is replaced atomically.

<reports>/<table>/<run id>-<operation>.json    one document
<reports>/<table>/expectations/...             results in Great Expectations' format (`validations`)
<reports>/holds/<table>.json                   a hold on a table: only a release removes it
<reports>/holds/<table>~look.json              the version up to which a table's history was examined
<reports>/holds/<table>~releases.json          who released the table from a hold, when and why
<reports>/pages/<name>.html                    a page
<reports>/~found/<run>.json                    the tables that a run found
<reports>/~ledger/...                          what was predicted and measured (`ledger`)
<reports>/~sent/...                            which message was sent to whom (`sent_marks`)
<reports>/~audits/<table>.json                 how far the table's commits were audited (`audit_marks`)
<reports>/~spent/<run>.json                    what the audits of a run have taken of their budget (`audit_spending`)
<reports>/~index/...                           a row of each document, for lists of runs (`kept_index`, `bundles`)
<reports>/~sweeps/<table>.json                 how far in the table's log sweeps have come (`sweep_marks`)
<reports>/~versions/<table>.json               the newest version whose writer is known (`found_versions`)
<reports>/~values/<table>/...                  values of rows, where the policy asks for them (`row_values`)
<reports>/~results/...                         what a job passes to the task that submitted it
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from nightkeep.causes import advice_on
from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.model import Operation, Outcome
from nightkeep.places import report_store
from nightkeep.records.bundles import noted
from nightkeep.records.codec import decode, encode, keyed
from nightkeep.records.document import Extra, RunDocument, to_text
from nightkeep.records.file_names import (
    FOUND,
    HOLDS,
    NO_TABLES,
    PAGES,
    document_name,
    look_name,
    page_name,
    slug,
    table_folder,
)
from nightkeep.records.json_files import History, read_folders, read_json
from nightkeep.records.ledger import is_alone, keep_measured
from nightkeep.records.version_marks import keep_version
from nightkeep.storage.kept import KeptFiles

# Larger than most documents.
_PROBED = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMark:
    """The version up to which a table's history was examined, its digest, and the commits that were reported."""

    table: str
    version: int
    identity: str
    reported: tuple[str, ...] = field(default=(), metadata=keyed("told"))
    extra: Extra = field(default_factory=dict)


def store(document: RunDocument, reports: str | Path) -> str:
    """Write or replace the document of its run, table and operation. Returns its address."""
    kept, text = report_store(reports), to_text(document)
    name = document_name(document.table, run_id=document.run_id, operation=document.operation)
    with noted(kept, document, text) as stored:
        kept.write(name, bytes_of(text))
        stored()
    return kept.address(name)


def store_if_absent(document: RunDocument, reports: str | Path) -> str | None:
    """Write the document of its run, table and operation if there is none. Returns its address, None if there is one.
    Raises OSError if it cannot be written."""
    kept, text = report_store(reports), to_text(document)
    name = document_name(document.table, run_id=document.run_id, operation=document.operation)
    with noted(kept, document, text) as stored:
        if not kept.swap(name, bytes_of(text), read=None):
            return None
        stored()
    return kept.address(name)


def secure(document: RunDocument, reports: str | Path) -> None:
    """Store a document before the work that it describes, where a hold can be written too.

    Raises EvidenceError if it cannot be written, and RefusedTable for a store that ignores conditions: the work must
    not be done then.
    """
    kept = report_store(reports)
    try:
        kept.prepare(HOLDS)
        store(document, reports)
    except OSError as failure:
        raise _unwritable(failure, kept.address(table_folder(document.table))) from failure


def require_writable(reports: str | Path, table: str) -> None:
    """Raise EvidenceError if no document of `table` can be written, and RefusedTable for a store that ignores
    conditions."""
    kept, folder = report_store(reports), table_folder(table)
    probe = f"{folder}/.probe"
    try:
        kept.prepare(folder)
        kept.write(probe, b" " * _PROBED)
        kept.remove(probe, read=None)
    except OSError as failure:
        raise _unwritable(failure, kept.address(folder)) from failure


def store_or_note(document: RunDocument, reports: str | Path) -> tuple[RunDocument, str | None]:
    """Store the document of finished work, note in the ledger what it measured, and up to which version it knows
    the writers. If it cannot be written, the
    document states that and the address is None."""
    try:
        address = store(document, reports)
    except OSError as failure:
        why = f"its document cannot be written: {why_not(failure)}"
        if document.committed_version is not None:
            why = f"version {document.committed_version} was published, but {why}"
        return replace(document, reason=joined(document.reason, why)), None
    keep_measured(document, reports)
    if (version := _accounted_for(document)) is not None:
        keep_version(reports, document.table, version)
    return document, address


def _accounted_for(document: RunDocument) -> int | None:
    """The version up to which the document names writers; None if that did not move. Of a run that Airflow tries again
    the next attempt replaces the document, and names them again."""
    base, committed = document.base_version, document.committed_version
    if base is None or document.outcome in (Outcome.FAILED, Outcome.CONFLICTED):
        return None
    if committed is not None and is_alone(document):
        return committed
    return None if document.found_versions is None else base


def document_path(reports: str | Path, table: str, *, run_id: str, operation: Operation) -> str:
    """The address of the document of a run, table and operation, whether it exists or not."""
    return report_store(reports).address(document_name(table, run_id=run_id, operation=operation))


def has_documents(reports: str | Path, table: str) -> bool:
    """Whether anything was ever stored of the table."""
    return bool(report_store(reports).list(table_folder(table)))


def found_path(reports: str | Path, prefix: str) -> str:
    """The file of the tables that the run with this prefix found, whether it exists or not."""
    return report_store(reports).address(f"{FOUND}/{slug(prefix)}.json")


def night_path(reports: str | Path, prefix: str) -> str:
    """The file of the order of the night with this prefix, whether it exists or not."""
    return report_store(reports).address(f"{FOUND}/{slug(prefix)}~night.json")


def read_history(reports: str | Path, table: str | None = None, *, newest: int | None = None) -> History:
    """Every document, or those of one table, and the files that could not be read; of each table only the `newest`
    where that is given. Raises OSError if the place of reports itself cannot be listed."""
    kept = report_store(reports)
    folders = [table_folder(table)] if table is not None else document_folders(kept)
    return read_folders(kept, folders, newest=newest)


def load_history(reports: str | Path, table: str | None = None) -> tuple[RunDocument, ...]:
    """Every document, or those of one table, oldest start first. Raises CorruptMetadata for a damaged one."""
    history = read_history(reports, table)
    for damaged in history.unreadable:
        raise damaged.error()
    return history.documents


def keep_look(reports: str | Path, mark: HistoryMark) -> None:
    """Store up to where a table's history was examined. Replaces the earlier mark."""
    report_store(reports).write(look_name(mark.table), bytes_of(json.dumps(encode(mark), indent=2) + "\n"))


def last_look(reports: str | Path, table: str) -> HistoryMark | None:
    """The stored mark of `table`; None if there is none or if it cannot be read: the history is examined again then."""
    kept, name = report_store(reports), look_name(table)
    try:
        return decode(HistoryMark, read_json(kept, name), kept.address(name))
    except (FileNotFoundError, CorruptMetadata):
        return None


def _unwritable(failure: OSError, folder: str) -> EvidenceError:
    parts = [why_not(failure), "nothing was done", advice_on(str(failure))]
    return EvidenceError(folder, "a place where the run's document can be written", "; ".join(filter(None, parts)))


def why_not(failure: OSError) -> str:
    return failure.strerror or str(failure)


def joined(reason: str | None, why: str) -> str:
    return f"{reason}; {why}" if reason else why


def document_folders(store: KeptFiles) -> list[str]:
    """The folders of all tables. Raises OSError if the place of reports cannot be listed; it may be missing."""
    return [name for name in store.folders() if name not in NO_TABLES]


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


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
