"""A table's folder of documents -> how its last run ended, and what was done under names that it had before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Outcome
from nightkeep.reports.document import RunDocument
from nightkeep.reports.json_files import History, load_document, read_folders
from nightkeep.reports.store import document_folder, document_folders, read_history

_LOOKED_AT: Final = 10
"""How many of a name's newest documents are read for ids."""


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of a table: the worst outcome of its operations."""

    run_id: str
    outcome: Outcome
    finished_at: datetime


def last_run(reports_dir: str | Path, table: str) -> LastRun | None:
    """The newest run of the table, None if there is none. Documents that cannot be read are left out."""
    documents = list[RunDocument]()
    for document in _newest_first(document_folder(reports_dir, table)):
        if documents and document.run_id != documents[0].run_id:
            break
        documents.append(document)
    if not documents:
        return None
    worst = Outcome.worst(document.outcome for document in documents)
    return LastRun(documents[0].run_id, worst, max(document.finished_at for document in documents))


def read_thread(reports_dir: str | Path, table: str) -> History:
    """The documents of the table, oldest start first, with those of its earlier names: they have the same id.

    Of every other name only the newest documents are read, to learn its ids.
    """
    own = read_history(reports_dir, table)
    ids = {document.table_id for document in own.documents} - {None}
    folder = document_folder(reports_dir, table)
    others = [each for each in document_folders(Path(reports_dir)) if each != folder] if ids else []
    earlier = read_folders([each for each in others if ids & _newest_ids(each)])
    documents = [*own.documents, *(each for each in earlier.documents if each.table_id in ids)]
    documents.sort(key=lambda each: each.started_at)
    return History(tuple(documents), (*own.unreadable, *earlier.unreadable))


def _newest_ids(folder: Path) -> set[str | None]:
    """The ids in the newest documents: another table may have taken the name, and some runs open no table."""
    return {each.table_id for each in islice(_newest_first(folder), _LOOKED_AT)}


def _newest_first(folder: Path) -> Iterator[RunDocument]:
    written = list[tuple[int, str]]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and not entry.name.startswith("."):
                with suppress(OSError):
                    written.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    for _, path in sorted(written, reverse=True):
        with suppress(CorruptMetadata, OSError):
            yield load_document(path)
