"""Marks of messages that were sent, beside the documents: one small file for each event and receiver.

A mark is created before its message is sent, and only by one process, as the store creates it exclusively. So nothing
is sent twice: not by a retry, and not by a second process at the same time. A process that ends in between leaves a
mark without an end. Its message may or may not have arrived; it is not sent again, and whoever finds the mark reports
that. A receiver that was not reached got nothing: its mark is removed, and the next try sends.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra
from nightkeep.records.file_names import SENT, slug
from nightkeep.records.json_files import parsed, read_kept
from nightkeep.records.store import bytes_of
from nightkeep.redaction import redacted
from nightkeep.storage.kept import KeptFile, KeptFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMark:
    """An event, a receiver as people read it, when sending began, and how it ended: None while it is being sent."""

    event: str
    receiver: str
    begun_at: datetime
    ended: str | None = None
    extra: Extra = field(default_factory=dict)


class SendClaim(StrEnum):
    """What a process finds that wants to send: it is the first, another one has sent, or another one ended midway."""

    FIRST = "first"
    SENT = "sent"
    UNKNOWN = "unknown"


def mark_name(event: str, receiver_key: str) -> str:
    """The file of a mark. The receiver is a digest in it, as what identifies it may be secret."""
    return f"{SENT}/{slug(event)}~{hashlib.sha256(receiver_key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.json"


def claim(reports: str | Path, name: str, mark: SentMark) -> SendClaim:
    """Create the mark of a message that is to be sent now, if there is none. Raises OSError if the store does not
    answer: then nothing may be sent."""
    store = report_store(reports)
    if store.swap(name, _text(mark), read=None):
        return SendClaim.FIRST
    with suppress(FileNotFoundError, CorruptMetadata):
        return SendClaim.SENT if read_mark(store, name)[0].ended else SendClaim.UNKNOWN
    return SendClaim.UNKNOWN


def conclude(reports: str | Path, name: str, mark: SentMark) -> None:
    """Replace a mark by one that states how sending ended. A store that does not answer leaves the earlier one."""
    with suppress(OSError):
        report_store(reports).write(name, _text(mark))


def withdraw(reports: str | Path, name: str) -> None:
    """Remove the mark of a message that certainly did not arrive, so that it can be sent later."""
    with suppress(OSError):
        report_store(reports).remove(name, read=None)


def read_mark(store: KeptFiles, name: str) -> tuple[SentMark, KeptFile]:
    """A mark, and the file that it is in. Raises FileNotFoundError, and CorruptMetadata for what is no mark."""
    kept, address = read_kept(store, name), store.address(name)
    return decode(SentMark, parsed(kept, address), address), kept


def _text(mark: SentMark) -> bytes:
    return bytes_of(json.dumps(redacted(encode(mark)), indent=2) + "\n")
