"""The place of reports -> what its documents state of each table: its last run, its last success, and holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from nightkeep.model import Outcome
from nightkeep.places import report_store
from nightkeep.records import RunDocument, holds_of
from nightkeep.records.json_files import side_by_side
from nightkeep.records.last_run import documents_below
from nightkeep.records.store import document_folders

_LOOKED_AT: Final = 60
"""How many of a table's newest documents are read to find a success: some weeks of nights."""
_SUCCESS: Final = frozenset({Outcome.VERIFIED, Outcome.UNCHANGED})


@dataclass(frozen=True, slots=True)
class TableState:
    """What the newest documents of a table state. `last`: those of its newest run. Times are of ends, None if unknown.

    A success is a rewrite that was verified, or had nothing to do. `verified_at` is that of a published version."""

    table: str
    last: tuple[RunDocument, ...]
    succeeded_at: datetime | None = None
    verified_at: datetime | None = None
    is_held: bool = False

    @property
    def outcome(self) -> Outcome:
        return Outcome.worst(document.outcome for document in self.last)

    @property
    def ended_at(self) -> datetime:
        return max(document.finished_at for document in self.last)


def table_states(reports: str) -> tuple[TableState, ...]:
    """The state of every table that has a document, by name. Raises OSError if the reports cannot be listed."""
    store = report_store(reports)
    folders = document_folders(store)
    newest = side_by_side(store, partial(_newest, reports), folders)
    found = {documents[0].table: documents for documents in newest if documents}
    held = set(holds_of(reports, found))
    return tuple(_state(table, found[table], is_held=table in held) for table in sorted(found))


def longest_lag(documents: Iterable[RunDocument], tables: Collection[str], now: datetime) -> float | None:
    """The seconds since the last success of the table, of these, for which they are the most; None where none has had
    any. `documents` may be those of other tables too, and brief ones."""
    of_table = defaultdict[str, list[RunDocument]](list)
    for document in documents:
        of_table[document.table].append(document)
    ends = [end for table in tables if (end := _succeeded_at(of_table[table])) is not None]
    return (now - min(ends)).total_seconds() if ends else None


def _newest(reports: str, folder: str) -> list[RunDocument]:
    """The newest documents of a table, as many as are needed to know its state."""
    documents = list[RunDocument]()
    for document in islice(documents_below(reports, folder).newest_first(), _LOOKED_AT):
        documents.append(document)
        if document.run_id != documents[0].run_id and _verified_at(documents) and _succeeded_at(documents):
            break
    return documents


def _state(table: str, documents: list[RunDocument], *, is_held: bool) -> TableState:
    last = tuple(each for each in documents if each.run_id == documents[0].run_id)
    return TableState(table, last, _succeeded_at(documents), _verified_at(documents), is_held)


def _succeeded_at(documents: Iterable[RunDocument]) -> datetime | None:
    return _latest(each for each in documents if each.operation.rewrites and each.outcome in _SUCCESS)


def _verified_at(documents: Iterable[RunDocument]) -> datetime | None:
    return _latest(
        each for each in documents if each.committed_version is not None and each.outcome is Outcome.VERIFIED
    )


def _latest(documents: Iterable[RunDocument]) -> datetime | None:
    return max((each.finished_at for each in documents), default=None)
