"""A document and where it is stored -> the line that a job prints about it, for the DAG that submitted the job."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nightkeep.errors import CorruptMetadata
from nightkeep.model.job_entry import JobEntry
from nightkeep.model.version import __version__
from nightkeep.records import RunDocument

PERMANENT = "permanent"
"""Key of a document's extras: a retry would fail for the same reason."""
_ALIKE_AGAIN = tuple(f"{kind.__name__}: " for kind in (PermissionError, CorruptMetadata))
"""How the reasons begin of failures that a retry meets again: nobody changes rights or bytes meanwhile."""


def permanent(document: RunDocument) -> RunDocument:
    """The document of a failure that a retry would meet again."""
    return replace(document, extra={**document.extra, PERMANENT: True})


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document and the address where it is stored, None if it could not be stored."""

    document: RunDocument
    path: str | None

    def to_json(self) -> JobEntry:
        document = self.document
        return {
            "table": document.table,
            "operation": document.operation,
            "outcome": document.outcome,
            "reason": document.reason,
            "committed_version": document.committed_version,
            "checked": not document.awaits_check,
            "document": self.path,
            "permanent": bool(document.extra.get(PERMANENT)) or (document.reason or "").startswith(_ALIKE_AGAIN),
            "nightkeep": __version__,
        }
