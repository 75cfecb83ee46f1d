"""A file of the reports -> its JSON value. Folders -> their readable documents, and the addresses of the others.

Anyone may have written, cut or replaced a file. So only regular files of a bounded size are read, and anything that is
not a valid document is an error that names the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from nightkeep.errors import CorruptMetadata
from nightkeep.places import located
from nightkeep.records.document import RunDocument
from nightkeep.records.failure_outcomes import without_stacks
from nightkeep.storage.kept import KeptFile, KeptFiles, ListedKept

T = TypeVar("T")
R = TypeVar("R")
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is no document, or a folder that cannot be listed. `modified_ms` is None if unknown."""

    path: str
    subject: str
    expected: str
    found: str
    modified_ms: int | None = None

    @staticmethod
    def of(address: str, failure: CorruptMetadata, modified_ms: int | None = None) -> Unreadable:
        return Unreadable(address, failure.subject, failure.expected, failure.found, modified_ms)

    def error(self) -> CorruptMetadata:
        return CorruptMetadata(self.subject, self.expected, self.found)

    def __str__(self) -> str:
        return f"{self.subject}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class History:
    """Documents, oldest start first, and the files that could not be read, by path. `older`: how many were not read."""

    documents: tuple[RunDocument, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    older: int = 0


def read_json(store: KeptFiles, name: str) -> object:
    """The JSON value of a file. Raises FileNotFoundError, and CorruptMetadata, naming the file, otherwise."""
    return parsed(read_kept(store, name), store.address(name))


def parsed(kept: KeptFile, address: str) -> object:
    """The JSON value of what a file holds. Raises CorruptMetadata, naming the file, for anything else."""
    with _json_of(address):
        return json_value(kept.data)


def read_kept(store: KeptFiles, name: str) -> KeptFile:
    """A file. Raises FileNotFoundError, and CorruptMetadata, naming the file, if it cannot be read."""
    with _json_of(store.address(name)):
        return store.read(name)


@contextmanager
def _json_of(address: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except RecursionError as error:
        raise CorruptMetadata(address, "JSON", "values nested too deeply") from error
    except OSError as error:
        raise CorruptMetadata(address, "a file that can be read", error.strerror or str(error)) from error
    except ValueError as error:
        raise CorruptMetadata(address, "JSON", str(error)) from error


def json_value(text: bytes) -> object:
    """The value of JSON. Raises ValueError for other text and for numbers beyond 64 bits, RecursionError for depth."""
    value: object = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_refuse)
    return value


def load_document(address: str | Path) -> RunDocument:
    """One stored document. Raises FileNotFoundError, and CorruptMetadata, naming the file, if it is no document."""
    return stored_document(*located(address))


def stored_document(store: KeptFiles, name: str) -> RunDocument:
    """As `load_document`, by the name in a store."""
    return without_stacks(RunDocument.from_json(read_json(store, name), store.address(name)))


def read_folders(store: KeptFiles, folders: Sequence[str], *, newest: int | None = None) -> History:
    """The documents of these folders, or the `newest` of each, by when they were written. A folder that does not exist
    has none."""
    found = [*side_by_side(store, partial(_listed, store), folders)]
    listed = [each for some in found for each in sorted(some, key=_written, reverse=True)[:newest]]
    failed = [each for each in listed if isinstance(each, Unreadable)]
    names = [each for each in listed if not isinstance(each, Unreadable)]
    read = [*side_by_side(store, lambda each: _document(store, *each), names)]
    documents = [each for each in read if isinstance(each, RunDocument)]
    documents.sort(key=lambda d: (d.started_at, d.table, d.run_id, d.operation))
    unreadable = [*failed, *(each for each in read if isinstance(each, Unreadable))]
    older = sum(map(len, found)) - len(listed)
    return History(tuple(documents), tuple(sorted(unreadable, key=lambda each: each.path)), older)


def documents_in(store: KeptFiles, folder: str) -> list[ListedKept]:
    """The documents in a folder, by name. Hidden files are none."""
    return [each for each in store.list(folder) if each.name.endswith(".json") and not each.name.startswith(".")]


def side_by_side(store: KeptFiles, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """The work on each item, in order; as many at once as the store likes."""
    if store.at_once == 1 or len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(store.at_once) as threads:
        yield from threads.map(work, items)


def _listed(store: KeptFiles, folder: str) -> Sequence[tuple[str, ListedKept] | Unreadable]:
    try:
        return [(folder, each) for each in documents_in(store, folder)]
    except OSError as failure:
        address = store.address(folder)
        return [Unreadable(address, address, "a folder that can be listed", failure.strerror or str(failure))]


def _written(listed: tuple[str, ListedKept] | Unreadable) -> int:
    return 0 if isinstance(listed, Unreadable) else listed[1].modified_ns


def _document(store: KeptFiles, folder: str, listed: ListedKept) -> RunDocument | Unreadable | None:
    """A document that was listed; None if it was removed meanwhile."""
    name = f"{folder}/{listed.name}"
    try:
        return stored_document(store, name)
    except FileNotFoundError:
        return None
    except CorruptMetadata as failure:
        return Unreadable.of(store.address(name), failure, listed.modified_ns // 1_000_000)


def _whole(text: str) -> int:
    # A page could neither add up nor show a larger number.
    if len(text) > 20 or not -_INT64 <= (value := int(text)) < _INT64:
        raise ValueError(f"a number beyond 64 bits, {text[:30]}")
    return value


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"a number beyond a double, {text[:30]}")
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text}, which is no number")
