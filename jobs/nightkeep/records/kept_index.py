"""Bundles of documents -> the index that is kept beside them: a row for each table's newest documents.

<reports>/~index/rows.v2

The documents are the truth. Whoever needs the index merges the bundles that came since, and replaces it if it is still
what was read, so that of two writers none loses a row. A bundle is removed a day after it was merged, as the tasks of
its run read it too; one that is merged twice changes nothing. An index that is missing, damaged or of another release
is built from the documents, and so is one where a bundle is damaged. Nothing in it names a file to be read, but for
documents that could not be read, which are tried again.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.bundles import NEW, Bundle, RunOfTable, bundled, is_of_run, listed_bundles, read_bundle
from nightkeep.records.document import RunDocument
from nightkeep.records.file_names import INDEX, NO_TABLES
from nightkeep.records.index_rows import Row, brief_document, made_ns, row_name, row_of
from nightkeep.records.json_files import History, Unreadable, json_value, read_folders, side_by_side, stored_document
from nightkeep.records.last_run import documents_of_run
from nightkeep.records.store import document_folders
from nightkeep.redaction import redact
from nightkeep.storage.kept import KeptFile, KeptFiles, ListedKept

_log = logging.getLogger(__name__)

NEWEST: Final = 40
"""How many documents of each table the index has."""
_ROWS: Final = f"{INDEX}/rows.v2"
"""Another ending than that of documents: earlier releases take every folder that they do not know for a table's."""
_TRIES: Final = 20
_MERGED_NS: Final = 24 * 3600 * 10**9
"""How long a merged bundle stays: longer than the tasks of its run take."""
_DEAD_NS: Final = 48 * 3600 * 10**9
"""The age of an open bundle whose process is taken for dead. Airflow ends a task after some hours."""
_TRIED_AGAIN: Final = 20
"""How many documents that could not be read are tried again each time."""
_FOLDER: Final = re.compile(r"(?!\.)[^/\0]{1,255}")
_DOCUMENT: Final = re.compile(r"(?!\.)[^/\0]{1,255}/(?!\.)[^/\0]{1,250}\.json")
"""Names of folders and of documents: these lead nowhere else."""

T = TypeVar("T")


@dataclass(slots=True)
class _Index:
    """`rows` by folder and name of the document, `documents` of these, `older`: how many documents have no row.
    `unreadable` by name, `merged`: bundles, by name."""

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    documents: dict[str, RunDocument] = field(default_factory=dict)
    older: int = 0
    unreadable: dict[str, Unreadable] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)

    def add(self, name: str, row: Row) -> bool:
        """Add a row, or replace the document's earlier one. Of a table with too many, the oldest goes."""
        folder, _, file = name.partition("/")
        rows = self.rows.setdefault(folder, {})
        known = rows.get(file)
        if known is not None and made_ns(known) >= made_ns(row):
            return False
        self.unreadable.pop(name, None)
        rows[file], self.documents[name] = row, brief_document(row)
        if len(rows) > NEWEST:
            oldest = min(rows, key=lambda each: self.documents[f"{folder}/{each}"].started_at)
            del rows[oldest], self.documents[f"{folder}/{oldest}"]
            # What is older than all the others was counted when it went.
            self.older += oldest != file
            return oldest != file
        return True

    def add_changed(self, rows: Mapping[str, Row]) -> bool:
        """Add these rows as far as they are of another content than those that are there. Whether any is."""
        changed = [each for each in rows.items() if self._row(each[0])[:-1] != each[1][:-1]]
        added = [self.add(name, row) for name, row in changed]
        return any(added)

    def keep_only(self, there: Mapping[str, Collection[str]], before: datetime) -> None:
        """Remove the rows of documents that ended before this time and are not there."""
        for folder, rows in self.rows.items():
            missing = [f"{folder}/{file}" for file in rows.keys() - {*there.get(folder, ())}]
            for name in [name for name in missing if self.documents[name].finished_at < before]:
                del rows[name.partition("/")[2]], self.documents[name]
        known = self.documents.keys() | self.unreadable.keys()
        self.older = sum(f"{folder}/{file}" not in known for folder, names in there.items() for file in names)

    def _row(self, name: str) -> Row:
        folder, _, file = name.partition("/")
        return self.rows.get(folder, {}).get(file, [])

    def to_json(self) -> dict[str, object]:
        return {
            "tables": self.rows,
            "older": self.older,
            "unreadable": {
                name: [each.subject, each.expected, each.found, each.modified_ms]
                for name, each in self.unreadable.items()
            },
            "merged": sorted(self.merged),
        }

    def history(self) -> History:
        documents = sorted(
            self.documents.values(), key=lambda each: (each.started_at, each.table, each.run_id, each.operation)
        )
        unreadable = sorted(self.unreadable.values(), key=lambda each: each.path)
        return History(tuple(documents), tuple(unreadable), self.older)


def keep_index(reports: str | Path, *, prefix: str, documents: Iterable[RunDocument] = (), read_ns: int = 0) -> History:
    """Bring the index up to date. Returns the newest documents of each table, brief ones, oldest start first.

    `documents`: those of the run with this prefix that the caller has read, at `read_ns` or later. Its bundles that
    are still open are of dead processes: their documents are looked up. An index that cannot be written is made again
    by the next caller. Raises OSError if the place of reports cannot be listed.
    """
    store, now_ns = report_store(reports), time.time_ns()
    known = {row_name(each): row_of(each, read_ns) for each in documents}

    def is_dead(bundle: ListedKept) -> bool:
        return is_of_run(bundle.name, prefix) or now_ns - bundle.modified_ns > _DEAD_NS

    for _ in range(_TRIES):
        bundles = listed_bundles(store)
        read, found = _read(store)
        index, changed = _updated(store, found, bundles, is_dead)
        changed |= index.add_changed(known)
        if not changed:
            break
        index.merged &= {each.name for each in bundles}
        if _replaced(store, index, read):
            _remove_merged(store, index, bundles, now_ns)
            break
    return index.history()


def read_index(reports: str | Path) -> History:
    """As `keep_index`, but nothing is written, and all bundles that are open are looked up."""
    store = report_store(reports)
    index, _ = _updated(store, _read(store)[1], listed_bundles(store), lambda _: True)
    return index.history()


def has_index(reports: str | Path) -> bool:
    """Whether an index is kept."""
    return any(each.name == _ROWS.rpartition("/")[2] for each in report_store(reports).list(INDEX))


@contextmanager
def indexed(reports: str | Path, prefix: str, runs: Sequence[RunOfTable]) -> Iterator[None]:
    """In the `with` block, documents of these runs go into one bundle. Where no page was written for days, which merges
    bundles, they are merged here."""
    with bundled(reports, prefix, runs):
        yield
    with suppress(OSError):
        oldest = min((each.modified_ns for each in listed_bundles(report_store(reports))), default=time.time_ns())
        if time.time_ns() - oldest > _DEAD_NS:
            keep_index(reports, prefix=prefix)


def forget_rows(reports: str | Path, there: Mapping[str, Collection[str]], before: datetime) -> None:
    """Remove the rows of documents that ended before this time and are not there any more, by folder and name, and
    count those without a row again. Younger ones may have been stored since that was listed. An index that is not kept
    is left to whoever needs it."""
    store = report_store(reports)
    for _ in range(_TRIES):
        read, index = _read(store)
        if index is None:
            return
        held = json.dumps(index.to_json())
        index.keep_only(there, before)
        if json.dumps(index.to_json()) == held or _replaced(store, index, read):
            return


def remove_index(reports: str | Path) -> None:
    """Whoever needs the index next builds it from the documents."""
    with suppress(OSError):
        report_store(reports).remove(_ROWS, read=None)


def _updated(
    store: KeptFiles, found: _Index | None, bundles: Sequence[ListedKept], is_dead: Callable[[ListedKept], bool]
) -> tuple[_Index, bool]:
    """The index with what these bundles add to it, and whether that is anything."""
    fresh = [each for each in bundles if found is None or each.name not in found.merged]
    read = dict(zip(fresh, side_by_side(store, partial(_bundle, store), fresh), strict=True))
    if found is None or None in read.values():
        return _built(store, {each.name for each, bundle in read.items() if bundle is None or bundle.ended}), True
    changed = _try_again(store, found)
    for each, bundle in read.items():
        assert bundle is not None
        if bundle.ended:
            for name, row in bundle.rows.items():
                found.add(name, row)
            found.merged.add(each.name)
            changed = True
        elif is_dead(each):
            changed |= found.add_changed(dict(_looked_up(store, bundle, found)))
    return found, changed


def _bundle(store: KeptFiles, listed: ListedKept) -> Bundle | None:
    """A bundle; None for one that is damaged. One that is gone or cannot be read now is open, without any run."""
    try:
        return read_bundle(store, listed.name)
    except OSError:
        return Bundle(())
    except CorruptMetadata:
        return None


def _looked_up(store: KeptFiles, bundle: Bundle, index: _Index) -> Iterator[tuple[str, Row]]:
    """The documents of the runs of an open bundle."""
    for table, run_id in bundle.runs:
        with suppress(OSError):
            now_ns = time.time_ns()
            found = documents_of_run(store.root, table, run_id)
            for document in found.documents.values():
                yield row_name(document), row_of(document, now_ns)
            index.unreadable |= {_name(store, each): each for each in found.unreadable.values()}


def _built(store: KeptFiles, merged: set[str]) -> _Index:
    """The index of all documents. The bundles `merged` ended, or cannot be read, before any document is read here."""
    now_ns = time.time_ns()
    history = read_folders(store, document_folders(store), newest=NEWEST)
    index = _Index(older=history.older, merged={*merged})
    for document in history.documents:
        index.add(row_name(document), row_of(document, now_ns))
    index.unreadable = {_name(store, each): each for each in history.unreadable}
    return index


def _name(store: KeptFiles, each: Unreadable) -> str:
    return each.path.removeprefix(store.root).lstrip("/")


def _try_again(store: KeptFiles, index: _Index) -> bool:
    """Whether some of what could not be read is another now: mended, or removed."""
    before = dict(index.unreadable)
    for name in [*before][:_TRIED_AGAIN]:
        del index.unreadable[name]
        now_ns = time.time_ns()
        found = _read_again(store, name, before[name].modified_ms)
        index.unreadable |= {_name(store, each): each for each in found.unreadable}
        index.add_changed({row_name(each): row_of(each, now_ns) for each in found.documents})
    return index.unreadable != before


def _read_again(store: KeptFiles, name: str, modified_ms: int | None) -> History:
    """A document, or those of a folder that could not be listed."""
    if _FOLDER.fullmatch(name) and name not in NO_TABLES:
        return read_folders(store, [name], newest=NEWEST)
    if not _DOCUMENT.fullmatch(name):
        return History()
    try:
        return History((stored_document(store, name),))
    except FileNotFoundError:
        return History()
    except CorruptMetadata as failure:
        return History(unreadable=(Unreadable.of(store.address(name), failure, modified_ms),))


def _replaced(store: KeptFiles, index: _Index, read: KeptFile | None) -> bool:
    """Whether it is done, or cannot be: False where another writer was faster."""
    try:
        return store.swap(_ROWS, json.dumps(index.to_json(), separators=(",", ":")).encode("ascii"), read=read)
    except (OSError, ValueError) as failure:
        _log.warning("the index of reports is not kept: %s", redact(str(failure)))
        return True


def _remove_merged(store: KeptFiles, index: _Index, bundles: Sequence[ListedKept], now_ns: int) -> None:
    """Remove the bundles that nobody needs any more: merged ones, and open ones of dead processes."""
    for each in bundles:
        if now_ns - each.modified_ns > (_MERGED_NS if each.name in index.merged else _DEAD_NS):
            with suppress(OSError):
                store.remove(f"{NEW}/{each.name}", read=None)


def _read(store: KeptFiles) -> tuple[KeptFile | None, _Index | None]:
    """The file as it is, and the index in it; None for a file that is not there, or holds no index."""
    try:
        read = store.read(_ROWS)
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError):
        # No regular file, or one of a size that nobody wrote.
        with suppress(OSError):
            store.remove(_ROWS, read=None)
        return None, None
    try:
        return read, _parsed(store, json_value(read.data))
    except (CorruptMetadata, RecursionError, ValueError, TypeError, KeyError):
        return read, None


def _parsed(store: KeptFiles, value: object) -> _Index:
    """Raises KeyError, TypeError, ValueError or CorruptMetadata for anything but an index."""
    held = _expect(dict, value)
    index = _Index(
        older=_expect(int, held["older"]), merged={_expect(str, each) for each in _expect(list, held["merged"])}
    )
    for folder, rows in _expect(dict, held["tables"]).items():
        index.rows[folder] = rows
        for file, row in _expect(dict, rows).items():
            index.documents[f"{folder}/{file}"] = brief_document(row)
    for name, parts in _expect(dict, held["unreadable"]).items():
        subject, expected, found = (_expect(str, each) for each in parts[:3])
        modified = None if parts[3] is None else _expect(int, parts[3])
        index.unreadable[name] = Unreadable(store.address(name), subject, expected, found, modified)
    return index


def _expect(kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__}, found {type(value).__name__}")
    return value
