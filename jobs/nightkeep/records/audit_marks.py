"""How far a table's commits were audited, kept with the reports: nothing is stored beside the table.

<reports>/~audits/<table>.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra
from nightkeep.records.file_names import AUDITS, slug
from nightkeep.records.json_files import read_json
from nightkeep.records.store import bytes_of
from nightkeep.redaction import redacted

MOST_COMMITS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCommit:
    """A commit that was audited: its version, the digest that identifies it, and what it held. `keeps_rows`: whether it
    states to be a compaction or another change of files alone; None in marks of earlier releases."""

    version: int
    digest: str
    kind: str
    author: str
    time_ms: int
    rows: int | None = None
    keeps_rows: bool | None = None
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditMark:
    """The newest versions that the last audits judged, oldest first, `MOST_COMMITS` at most.

    `audited_at` is the time of the last audit, `files_at` that of the last one that looked for files, None if none did.
    """

    table: str
    commits: tuple[AuditedCommit, ...]
    audited_at: datetime
    files_at: datetime | None = None
    extra: Extra = field(default_factory=dict)

    @property
    def newest(self) -> AuditedCommit:
        return self.commits[-1]


def audit_mark(reports: str | Path, table: str) -> AuditMark | None:
    """The mark of `table`. None if there is none, or if it cannot be read: an audit then goes back as a first one."""
    store, name = report_store(reports), _name(table)
    with suppress(FileNotFoundError, CorruptMetadata):
        mark = decode(AuditMark, read_json(store, name), store.address(name))
        return mark if mark.commits else None
    return None


def keep_audit_mark(reports: str | Path, mark: AuditMark) -> None:
    """Store a mark. Replaces the earlier one. Raises OSError."""
    kept = redacted(encode(mark))
    report_store(reports).write(_name(mark.table), bytes_of(json.dumps(kept, indent=2) + "\n"))


def unaudited_first(reports: str | Path, tables: Iterable[str]) -> list[str]:
    """The tables by when they were audited last, those that never were first. One listing; raises OSError."""
    times = {listed.name: listed.modified_ns for listed in report_store(reports).list(AUDITS)}
    return sorted(tables, key=lambda table: times.get(f"{slug(table)}.json", 0))


def latest(commits: Sequence[AuditedCommit]) -> tuple[AuditedCommit, ...]:
    return tuple(commits[-MOST_COMMITS:])


def _name(table: str) -> str:
    return f"{AUDITS}/{slug(table)}.json"
