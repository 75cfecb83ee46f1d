"""The files by which a job reports to whoever submitted it: its entries, the tables at work, and how it ended.

A driver in a cluster has no exit status that arrives everywhere. The file of the end is written last: without it, the
job was ended by something else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from nightkeep.errors import USAGE_STATUS
from nightkeep.places import read_text, write_file
from nightkeep.redaction import redact


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The exit status of a job, and for a failure the sentence that it printed."""

    status: int
    reason: str = ""

    @property
    def is_usage(self) -> bool:
        """Whether the job did not understand its policy or arguments, so that a retry would fail too."""
        return self.status == USAGE_STATUS


def at_work_file(result: str) -> str:
    """The file that names the tables at work, each a line. It exists only while tables are at work."""
    return f"{result}.hand"


def end_file(result: str) -> str:
    return f"{result}.end"


def note_end(result: str, end: JobEnd) -> None:
    """Write how the job ended. Raises OSError."""
    write_file(end_file(result), json.dumps({"status": end.status, "reason": redact(end.reason)}) + "\n")


def read_end(result: str) -> JobEnd | None:
    """How the job ended; None where it noted no end, or none that can be read. Raises OSError if the store does not
    answer."""
    text = read_text(end_file(result))
    try:
        found = json.loads(text or "")
        return JobEnd(int(found["status"]), str(found.get("reason") or ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
