"""A choice of documents -> these, read; what is chosen is known from the index, so that no other document is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.document import RunDocument
from nightkeep.records.index_rows import row_name
from nightkeep.records.json_files import History, Unreadable, side_by_side, stored_document
from nightkeep.records.kept_index import NEWEST, has_index, read_index
from nightkeep.storage.kept import KeptFiles

Choose = Callable[[Sequence[RunDocument]], Sequence[RunDocument]]
"""Chooses among documents that are oldest first, by what a row of the index has of them."""
Bound = Callable[[Sequence[RunDocument]], datetime | None]
"""The time since which all that suits was chosen; None where that has no bound."""


def read_all(_: RunDocument) -> bool:
    """For callers that need each document as it is stored."""
    return True


def chosen_documents(
    reports: str | Path, choose: Choose, bound: Bound, is_read: Callable[[RunDocument], bool] = read_all
) -> History | None:
    """The documents that are chosen, oldest start first, and what cannot be read. Of those that are not to be read, the
    brief ones of the index. None where the index does not suffice: it is not there, or a table has older documents that
    would be chosen too. Raises OSError if the reports cannot be listed."""
    if not has_index(reports):
        return None
    known = read_index(reports)
    chosen = choose(known.documents)
    if known.older and not _reaches(known.documents, bound(chosen)):
        return None
    store = report_store(reports)
    names = [row_name(each) for each in chosen if is_read(each)]
    found = dict(zip(names, side_by_side(store, lambda name: _read(store, name), names), strict=True))
    read = [found[name] if (name := row_name(each)) in found else each for each in chosen]
    documents = tuple(each for each in read if isinstance(each, RunDocument))
    unreadable = {each.path: each for each in (*known.unreadable, *read) if isinstance(each, Unreadable)}
    return History(documents, tuple(unreadable[path] for path in sorted(unreadable)))


def _reaches(documents: Sequence[RunDocument], bound: datetime | None) -> bool:
    """Whether the index has every document since then. Of a table with as many as it keeps, there may be older ones."""
    if bound is None:
        return False
    counts = Counter(document.table for document in documents)
    oldest = {each.table: each for each in reversed(documents)}
    return all(oldest[table].finished_at < bound for table, count in counts.items() if count >= NEWEST)


def _read(store: KeptFiles, name: str) -> RunDocument | Unreadable | None:
    """A document; None if it is gone."""
    try:
        return stored_document(store, name)
    except FileNotFoundError:
        return None
    except CorruptMetadata as failure:
        return Unreadable.of(store.address(name), failure)
