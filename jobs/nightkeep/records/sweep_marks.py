"""How far in a table's log sweeps have come, kept with the reports: in the table's folder anybody might write it.

<reports>/~sweeps/<table>.json
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra
from nightkeep.records.file_names import SWEEPS, slug
from nightkeep.records.json_files import read_json
from nightkeep.records.store import bytes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepMark:
    """No file is left that the log of `table` names as removed by versions up to `version`.

    `table_id` and `digest` identify the table and the commit of that version. `listed_at`: when a sweep listed the
    table's folders last, None if none is known.
    """

    table: str
    table_id: str
    version: int
    digest: str
    swept_at: datetime
    listed_at: datetime | None = None
    extra: Extra = field(default_factory=dict)


def sweep_mark(reports: str | Path, table: str) -> SweepMark | None:
    """The mark of `table`. None if there is none, or if it cannot be read: the next sweep lists the folders then."""
    store, name = report_store(reports), _name(table)
    with suppress(FileNotFoundError, CorruptMetadata):
        return decode(SweepMark, read_json(store, name), store.address(name))
    return None


def keep_sweep_mark(reports: str | Path, mark: SweepMark) -> None:
    """Store a mark. Replaces the earlier one. Raises OSError."""
    report_store(reports).write(_name(mark.table), bytes_of(json.dumps(encode(mark), indent=2) + "\n"))


def forget_sweep_mark(reports: str | Path, table: str) -> None:
    """Remove the mark, if there is one. Raises OSError."""
    store = report_store(reports)
    with suppress(FileNotFoundError):
        store.remove(_name(table), read=None)


def _name(table: str) -> str:
    return f"{SWEEPS}/{slug(table)}.json"
