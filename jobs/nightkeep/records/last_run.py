"""A table's folder of documents -> how its last run ended, and what was done under names that it had before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.places import report_store
from nightkeep.records.document import RunDocument
from nightkeep.records.file_names import document_name, table_folder
from nightkeep.records.json_files import History, Unreadable, documents_in, read_folders, side_by_side, stored_document
from nightkeep.records.store import document_folders
from nightkeep.storage.kept import KeptFiles

_LOOKED_AT: Final = 10
"""How many of a name's newest documents are read for ids."""
_FIRST: Final = 2


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of a table: the worst outcome of its operations."""

    run_id: str
    outcome: Outcome
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class TableDocuments:
    """The documents of one table, listed newest first, by when they were written; none is read yet."""

    store: KeptFiles
    folder: str
    names: tuple[str, ...]

    def newest_first(self, *operations: Operation) -> Iterator[RunDocument]:
        """Those that can be read, of these operations or of all: read as far as they are asked for, few at once."""
        endings = tuple(f"-{operation}.json" for operation in operations or Operation)
        names = [f"{self.folder}/{name}" for name in self.names if name.endswith(endings)]
        # The first ones are often enough.
        most = min(_FIRST, self.store.at_once)
        while names:
            chunk, names = names[:most], names[most:]
            yield from filter(None, side_by_side(self.store, partial(_readable, self.store), chunk))
            most = self.store.at_once


def table_documents(reports: str | Path, table: str) -> TableDocuments:
    """The documents of a table, none if they cannot be listed."""
    return _listed(report_store(reports), table_folder(table))


def documents_below(reports: str | Path, folder: str) -> TableDocuments:
    """The documents in one of the folders of tables, none if they cannot be listed."""
    return _listed(report_store(reports), folder)


@dataclass(frozen=True, slots=True)
class DocumentsOfRun:
    """What one run stored of a table: documents by their addresses, and the files that cannot be read, with the
    operation of each."""

    documents: Mapping[str, RunDocument]
    unreadable: Mapping[Operation, Unreadable]


def documents_of_run(reports: str | Path, table: str, run_id: str) -> DocumentsOfRun:
    """The documents of a run and a table, in the order of the operations. Raises OSError if they cannot be listed."""
    store, folder = report_store(reports), table_folder(table)
    names = {document_name(table, run_id=run_id, operation=each): each for each in Operation}
    there = {f"{folder}/{each.name}" for each in documents_in(store, folder)}
    documents, unreadable = dict[str, RunDocument](), dict[Operation, Unreadable]()
    for name, operation in names.items():
        if name in there:
            try:
                documents[store.address(name)] = stored_document(store, name)
            except FileNotFoundError:
                continue
            except CorruptMetadata as failure:
                unreadable[operation] = Unreadable.of(store.address(name), failure)
    return DocumentsOfRun(documents, unreadable)


def last_run(reports: str | Path, table: str) -> LastRun | None:
    """The newest run of the table, None if there is none. Documents that cannot be read are left out."""
    return _last_run(report_store(reports), table_folder(table))


def last_outcomes(reports: str | Path, tables: Sequence[str]) -> dict[str, Outcome]:
    """The outcome of the newest run of each table that has one. Only tables with documents are looked at, and of each
    only its newest documents are read."""
    store = report_store(reports)
    there = {*store.folders()}
    known = [table for table in tables if table_folder(table) in there]
    found = side_by_side(store, lambda table: _last_run(store, table_folder(table)), known)
    return {table: last.outcome for table, last in zip(known, found, strict=True) if last is not None}


def _last_run(store: KeptFiles, folder: str) -> LastRun | None:
    documents = list[RunDocument]()
    for document in _newest_first(store, folder):
        if documents and document.run_id != documents[0].run_id:
            break
        documents.append(document)
    if not documents:
        return None
    worst = Outcome.worst(document.outcome for document in documents)
    return LastRun(documents[0].run_id, worst, max(document.finished_at for document in documents))


def read_thread(reports: str | Path, table: str) -> History:
    """The documents of the table, oldest start first, with those of its earlier names: they have the same id.

    Of every other name only the newest documents are read, to learn its ids.
    """
    store, folder = report_store(reports), table_folder(table)
    own = read_folders(store, [folder])
    ids = {document.table_id for document in own.documents} - {None}
    others = [each for each in document_folders(store) if each != folder] if ids else []
    newest = side_by_side(store, partial(_newest_ids, store), others)
    earlier = read_folders(store, [each for each, found in zip(others, newest, strict=True) if ids & found])
    documents = [*own.documents, *(each for each in earlier.documents if each.table_id in ids)]
    documents.sort(key=lambda each: each.started_at)
    return History(tuple(documents), (*own.unreadable, *earlier.unreadable))


def _newest_ids(store: KeptFiles, folder: str) -> set[str | None]:
    """The ids in the newest documents: another table may have taken the name, and some runs open no table."""
    return {each.table_id for each in islice(_newest_first(store, folder), _LOOKED_AT)}


def _newest_first(store: KeptFiles, folder: str) -> Iterator[RunDocument]:
    return _listed(store, folder).newest_first()


def _listed(store: KeptFiles, folder: str) -> TableDocuments:
    written = list[tuple[int, str]]()
    with suppress(OSError):
        written = [(each.modified_ns, each.name) for each in documents_in(store, folder)]
    return TableDocuments(store, folder, tuple(name for _, name in sorted(written, reverse=True)))


def _readable(store: KeptFiles, name: str) -> RunDocument | None:
    with suppress(CorruptMetadata, OSError):
        return stored_document(store, name)
    return None
