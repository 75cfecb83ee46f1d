"""Documents that a process stores -> one bundle of them, for whoever keeps the index and writes the page of the run.

<reports>/~index/new/<prefix of the run>.<unique>.bundle

A bundle is written twice: open, before the first document, with the runs whose documents this process may store, and
ended, after the last one, with what it has stored. A process that is killed in between leaves the open one. Then the
documents of these runs are looked up, and no others. A bundle that cannot be written hinders no run: the index lacks
the documents until it is built anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final
from uuid import uuid4

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation
from nightkeep.places import report_store
from nightkeep.records.document import RunDocument
from nightkeep.records.failure_outcomes import without_stacks
from nightkeep.records.file_names import INDEX, slug
from nightkeep.records.index_rows import Row, brief_document, made_ns, row_name, row_of
from nightkeep.records.json_files import read_json, side_by_side
from nightkeep.storage.kept import KeptFiles, ListedKept

NEW: Final = f"{INDEX}/new"
_ENDING: Final = ".bundle"
_LARGEST_DOCUMENT: Final = 16 << 10
"""Bytes of a document that is in the bundle itself: one of a table with nothing to do has a fifth of it."""

RunOfTable = tuple[str, str]
"""A table and the id of a run on it."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a process stored. `rows` by the names of documents, and of these the `documents` that are small."""

    runs: tuple[RunOfTable, ...]
    ended: bool = False
    rows: Mapping[str, Row] = field(default_factory=dict)
    documents: Mapping[str, RunDocument] = field(default_factory=dict)


class _Open:
    """The bundle that this process is to write, of one place of reports."""

    def __init__(self, store: KeptFiles, prefix: str, runs: Sequence[RunOfTable]) -> None:
        self.store, self.runs = store, tuple(runs)
        self._name = f"{NEW}/{slug(prefix)}.{uuid4().hex}{_ENDING}"
        self._rows: dict[str, Row] = {}
        self._documents: dict[str, dict[str, object]] = {}
        self._lock = Lock()
        self._begun = False

    def covers(self, store: KeptFiles, document: RunDocument) -> bool:
        return store.root == self.store.root and (document.table, document.run_id) in self.runs

    def begin(self) -> None:
        with self._lock:
            if not self._begun:
                self._write(ended=False)
                self._begun = True

    def add(self, document: RunDocument, text: str) -> None:
        """Add a document that was stored as this text."""
        name = row_name(document)
        with self._lock:
            self._rows[name] = row_of(document, time.time_ns())
            self._documents.pop(name, None)
            if len(text) <= _LARGEST_DOCUMENT:
                self._documents[name] = json.loads(text)

    def end(self) -> None:
        with self._lock:
            if self._begun:
                self._write(ended=True)

    def _write(self, *, ended: bool) -> None:
        value = {
            "ended": ended,
            "runs": self.runs,
            "rows": [*self._rows.values()],
            "documents": [*self._documents.values()],
        }
        with suppress(OSError, ValueError):
            self.store.write(self._name, json.dumps(value, separators=(",", ":")).encode("ascii"))


_open: list[_Open] = []
"""The bundles of this process. Threads that work on tables of one group share that of the group."""


@contextmanager
def bundled(reports: str | Path, prefix: str, runs: Sequence[RunOfTable]) -> Iterator[None]:
    """In the `with` block, documents of these runs go into one bundle. Nothing is written without a document."""
    mine = _Open(report_store(reports), prefix, runs)
    _open.append(mine)
    try:
        yield
    finally:
        _open.remove(mine)
        mine.end()


@contextmanager
def noted(store: KeptFiles, document: RunDocument, text: str) -> Iterator[Callable[[], None]]:
    """In the `with` block, the document may be stored as this text, and what is yielded is called once it is. It goes
    into the bundle of its run, else into one of its own."""
    found = next((each for each in reversed(_open) if each.covers(store, document)), None)
    prefix = document.run_id.removesuffix(f":{document.table}")
    mine = found or _Open(store, prefix, [(document.table, document.run_id)])
    mine.begin()
    yield partial(mine.add, document, text)
    if found is None:
        mine.end()


def listed_bundles(store: KeptFiles) -> list[ListedKept]:
    """Raises OSError if they cannot be listed."""
    return [each for each in store.list(NEW) if each.name.endswith(_ENDING) and not each.name.startswith(".")]


def is_of_run(bundle: str, prefix: str) -> bool:
    """Whether a bundle with this name is of a run with this prefix."""
    return bundle.removesuffix(_ENDING).rpartition(".")[0] == slug(prefix)


def read_bundle(store: KeptFiles, name: str) -> Bundle:
    """The bundle in a file of NEW. Raises FileNotFoundError, and CorruptMetadata for anything else."""
    address = store.address(f"{NEW}/{name}")
    try:
        return _parsed(read_json(store, f"{NEW}/{name}"), address)
    except (KeyError, TypeError, ValueError) as failure:
        raise CorruptMetadata(address, "a bundle of documents", f"{type(failure).__name__}: {failure}") from failure


@dataclass(frozen=True, slots=True)
class BundledRun:
    """What the bundles of a run hold: small documents by their addresses, and by table the operations of all documents
    that were stored of it, where none of its processes is known to have died."""

    documents: Mapping[str, RunDocument] = field(default_factory=dict)
    stored: Mapping[str, frozenset[Operation]] = field(default_factory=dict)


def bundles_of_run(reports: str | Path, prefix: str) -> BundledRun:
    """The bundles of the run with this prefix. Nothing where one cannot be read: then all is looked up."""
    store = report_store(reports)
    try:
        names = [each.name for each in listed_bundles(store) if is_of_run(each.name, prefix)]
        read = [*side_by_side(store, partial(read_bundle, store), names)]
    except (CorruptMetadata, OSError):
        return BundledRun()
    last: dict[str, tuple[int, Bundle]] = {}
    for bundle in read:
        for name, row in bundle.rows.items():
            if name not in last or last[name][0] <= made_ns(row):
                last[name] = made_ns(row), bundle
    documents = {
        store.address(name): bundle.documents[name] for name, (_, bundle) in last.items() if name in bundle.documents
    }
    unsure = {table for bundle in read if not bundle.ended for table, _ in bundle.runs}
    stored: dict[str, frozenset[Operation]] = {}
    for name, (_, bundle) in last.items():
        document = brief_document(bundle.rows[name])
        if document.table not in unsure:
            stored[document.table] = stored.get(document.table, frozenset()) | {document.operation}
    return BundledRun(documents, stored)


def _parsed(value: object, address: str) -> Bundle:
    if not isinstance(value, dict):
        raise TypeError(type(value).__name__)
    documents = [without_stacks(RunDocument.from_json(each, address)) for each in value["documents"]]
    return Bundle(
        runs=tuple((_text(table), _text(run_id)) for table, run_id in value["runs"]),
        ended=value["ended"] is True,
        rows={row_name(brief_document(row)): row for row in value["rows"]},
        documents={row_name(each): each for each in documents},
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
