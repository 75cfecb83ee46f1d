"""What the audits of one run have taken of the budget that they share: a small file for each run.

<reports>/~spent/<run>.json

Several jobs add to it at once, by the store's conditional replace. A figure that cannot be kept is left out: a run then
audits more than it was to, and no less.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra
from nightkeep.records.file_names import SPENT, slug
from nightkeep.records.json_files import parsed, read_kept
from nightkeep.records.store import bytes_of
from nightkeep.storage.kept import KeptFile, KeptFiles

_TRIES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSpending:
    """Bytes of moved files that were read, and milliseconds of all audits added up."""

    bytes: int = 0
    time_ms: int = 0
    extra: Extra = field(default_factory=dict)


def audit_spending(reports: str | Path, run: str) -> AuditSpending:
    """What the audits of a run have taken so far; nothing if that cannot be read."""
    store, name = report_store(reports), _name(run)
    with suppress(OSError, CorruptMetadata):
        return _read(store, name)[0]
    return AuditSpending()


def add_audit_spending(reports: str | Path, run: str, spent: AuditSpending) -> None:
    """Add what one audit has taken. A store that does not answer keeps the earlier figures."""
    store, name = report_store(reports), _name(run)
    with suppress(OSError, CorruptMetadata):
        for _ in range(_TRIES):
            before, read = _read(store, name)
            total = AuditSpending(bytes=before.bytes + spent.bytes, time_ms=before.time_ms + spent.time_ms)
            if store.swap(name, bytes_of(json.dumps(encode(total)) + "\n"), read=read):
                return


def _read(store: KeptFiles, name: str) -> tuple[AuditSpending, KeptFile | None]:
    try:
        read = read_kept(store, name)
    except FileNotFoundError:
        return AuditSpending(), None
    return decode(AuditSpending, parsed(read, store.address(name)), store.address(name)), read


def _name(run: str) -> str:
    return f"{SPENT}/{slug(run)}.json"
