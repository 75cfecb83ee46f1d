"""A table's folder of documents -> how its last run ended. Only the documents of that run are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Outcome
from nightkeep.reports.document import RunDocument
from nightkeep.reports.json_files import load_document
from nightkeep.reports.store import document_folder


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
