"""Documents that the policy keeps no longer, and what belongs to them -> removed, once a day.

    list         folders of tables, holds, the index
    judge        read documents that were written before the limit; `needed_documents` decides
    remove       of each document: its results, its values of rows, its pages of both, its lists of orphan files, then
                 the document
    reconcile    rows of the index without a document; pages of runs without one; other files of runs (`run_files`)

A document goes last of what belongs to it, so that a process that dies in between leaves it to the next day. Rows and
pages are reconciled with what is there, not with what this process removed: the next day finishes what this one began.
Each document is read again, and removed on the condition that nobody has changed it since it was judged. Nothing is
removed through a link, as it may lead out of the place of reports. What cannot be read or listed stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from nightkeep.errors import CorruptMetadata, EvidenceError, Unreachable
from nightkeep.places import report_store
from nightkeep.records.document import Expectations, Metrics, PlanSection, RunDocument
from nightkeep.records.failure_outcomes import without_stacks
from nightkeep.records.file_names import HOLDS, INDEX, PAGES, document_name, hold_name, is_hold
from nightkeep.records.holds import held
from nightkeep.records.index_rows import row_name
from nightkeep.records.json_files import documents_in, parsed, read_kept, side_by_side
from nightkeep.records.kept_index import forget_rows, read_index
from nightkeep.records.needed_documents import TableNeeds, unneeded
from nightkeep.records.row_values import files_of_values
from nightkeep.records.run_files import is_older, remove_file_of_run, remove_run_files
from nightkeep.records.store import document_folders
from nightkeep.records.validations import DATA_DOCS, RESULTS_OF_RUNS, docs_page_name, is_own_folder
from nightkeep.storage.kept import KeptFile, KeptFiles, ListedKept

_MARK: Final = f"{INDEX}/forgotten"
"""When this was done last. Whoever replaces the mark does it; another ending than that of documents, as `rows`."""
_DAY: Final = timedelta(hours=20)
"""A night that begins earlier than the one before still does it."""
_MOST_REMOVED: Final = 2000
"""How many documents go in a day: with the first limit of an old place, the page task must not take an hour."""
_ORPHANS: Final = re.compile(r"\.orphans(-[0-9]+)?\.jsonl")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many documents were removed, and how many pages and other files."""

    documents: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class _Judged:
    """A document that nothing needs: its name, and the digest of what was read."""

    name: str
    document: RunDocument
    digest: bytes


@dataclass(slots=True)
class _Place:
    """What is in the place of reports: the documents of each table's folder, by name, as they were listed."""

    store: KeptFiles
    limit: datetime
    listed: dict[str, dict[str, ListedKept]] = field(default_factory=dict)

    def old(self, folder: str) -> list[ListedKept]:
        return [each for each in self.listed[folder].values() if is_older(each, self.limit)]


NeedsOf = Callable[[str], TableNeeds]
"""What the policy states of a table, by its name, without its hold."""


def forget_documents(
    reports: str | Path, *, keep: timedelta, needs_of: NeedsOf, now: datetime, most: int = _MOST_REMOVED
) -> Forgotten | None:
    """Remove the documents that ended longer ago than `keep`, `most` of them. None if that was done in the last day.

    Raises OSError if the place of reports cannot be listed; nothing, or not all, was removed then.
    """
    store = report_store(reports)
    if not _is_due(store, now):
        return None
    place, gone, files = _Place(store, now - keep), 0, 0
    held_names = {f"{HOLDS}/{each.name}" for each in store.list(HOLDS)}
    folders = [each for each in document_folders(store) if is_own_folder(store, each)]
    for folder, found in zip(folders, side_by_side(store, partial(documents_in, store), folders), strict=True):
        place.listed[folder] = {each.name: each for each in found}
    newest: dict[str, list[RunDocument]] = {}
    for brief in read_index(reports).documents:
        newest.setdefault(brief.table, []).append(brief)
    needs = partial(_needs, reports, held_names, needs_of)
    for folder in folders:
        judged = _judged(place, folder, newest, needs)[: most - gone]
        if judged:
            files += _remove_parts(store, folder, judged)
        for each, is_removed in zip(judged, side_by_side(store, partial(_remove, store), judged), strict=True):
            if is_removed:
                del place.listed[folder][each.name.partition("/")[2]]
                gone += 1
    forget_rows(reports, place.listed, place.limit)
    there = [name for names in place.listed.values() for name in names]
    files += remove_run_files(store, there, older_than=place.limit, holds_stand=any(map(is_hold, held_names)))
    return Forgotten(gone, files)


def _is_due(store: KeptFiles, now: datetime) -> bool:
    """Whether this process is the one that does it today."""
    read: KeptFile | None = None
    try:
        read = store.read(_MARK)
    except FileNotFoundError:
        pass
    except ValueError as failure:
        raise OSError(f"{store.address(_MARK)}: {failure}") from failure
    last = None if read is None else _time(read.data)
    if last is not None and last <= now < last + _DAY:
        return False
    # A store takes the content of two writers for that of one whose request it had twice, if it is the same.
    return store.swap(_MARK, f"{now.isoformat()} {uuid4().hex}\n".encode("ascii"), read=read)


def _time(data: bytes) -> datetime | None:
    try:
        found = datetime.fromisoformat(data[:80].decode("ascii").partition(" ")[0])
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def _needs(reports: str | Path, held_names: set[str], needs_of: NeedsOf, table: str) -> TableNeeds:
    needs = needs_of(table)
    if hold_name(table) not in held_names:
        return needs
    try:
        hold = held(reports, table)
    except (EvidenceError, Unreachable, OSError):
        return replace(needs, held=None)
    return needs if hold is None else replace(needs, held=frozenset(hold.runs))


def _judged(place: _Place, folder: str, newest: Mapping[str, Sequence[RunDocument]], needs: NeedsOf) -> list[_Judged]:
    """The old documents of a folder that nothing needs, oldest first."""
    names = [f"{folder}/{each.name}" for each in place.old(folder)]
    read = [each for each in side_by_side(place.store, partial(_read, place.store), names) if each is not None]
    found = {each.document.table: each for each in read}
    if len(found) != 1:
        # Nothing is old, or somebody put documents of other tables here.
        return []
    (table,) = found
    old = [each for each in read if each.document.finished_at < place.limit]
    known = {each.name for each in read}
    newer = [each for each in newest.get(table, ()) if row_name(each) not in known and _is_there(place, each)]
    # Documents that were written again lately are the newer ones, whatever the index knows of them.
    newer += [each.document for each in read if each not in old]
    free = {id(each) for each in unneeded([each.document for each in old], newer, needs(table))}
    judged = [each for each in old if id(each.document) in free]
    return sorted(judged, key=lambda each: each.document.finished_at)


def _is_there(place: _Place, document: RunDocument) -> bool:
    folder, _, file = row_name(document).partition("/")
    return file in place.listed.get(folder, {})


def _read(store: KeptFiles, name: str) -> _Judged | None:
    """A document as far as it is judged by; None for what is no document of this name, and for one that is gone."""
    try:
        kept = read_kept(store, name)
        address = store.address(name)
        document = without_stacks(RunDocument.from_json(parsed(kept, address), address))
    except FileNotFoundError:
        # In a bucket, the mark of a removal that was not finished.
        with suppress(OSError):
            store.remove(name, read=None)
        return None
    except CorruptMetadata:
        return None
    own = document_name(document.table, run_id=document.run_id, operation=document.operation)
    if own != name:
        return None
    # Lists of files are long, and nothing is decided by them.
    small = replace(
        document,
        plan=PlanSection(),
        units=(),
        metrics=Metrics(),
        expectations=Expectations(document.expectations.status),
    )
    return _Judged(name, small, _digest(kept))


def _digest(kept: KeptFile) -> bytes:
    return hashlib.sha256(kept.data).digest()


def _remove_parts(store: KeptFiles, folder: str, judged: Sequence[_Judged]) -> int:
    """Remove what belongs to documents. Returns how many files."""
    results, docs = f"{folder}/{RESULTS_OF_RUNS}", f"{PAGES}/{DATA_DOCS}"
    files = [each.name.partition("/")[2] for each in judged]
    there = {each.name for each in store.list(results)} if is_own_folder(store, results) else set()
    names = [f"{results}/{name}" for name in files if name in there]
    stems = {name.removesuffix(".json") for name in files}
    lists = (each.name for each in store.list(folder) if _ORPHANS.search(each.name))
    names += [f"{folder}/{name}" for name in lists if _ORPHANS.sub("", name) in stems]
    pages = {f"{docs_page_name(each.document, number)}.html" for each in judged for number in (1, 2, 3, 4)}
    shown = {each.name for each in store.list(docs)} if is_own_folder(store, docs) else set()
    names += [f"{docs}/{name}" for name in sorted(pages & shown)]
    names += [name for each in judged for name in files_of_values(each.document) if _is_own(store, name)]
    return sum(side_by_side(store, partial(remove_file_of_run, store), names))


def _is_own(store: KeptFiles, name: str) -> bool:
    return is_own_folder(store, name.rpartition("/")[0])


def _remove(store: KeptFiles, each: _Judged) -> bool:
    """Remove a document, unless it is another one by now, or cannot be."""
    with suppress(OSError, ValueError):
        kept = store.read(each.name)
        return _digest(kept) == each.digest and store.discard(each.name, read=kept)
    return False
