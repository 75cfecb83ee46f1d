"""Releases of a table from holds: who, when and why. A file beside the holds, as the hold itself is removed."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra, RunDocument
from nightkeep.records.file_names import HOLDS, releases_name
from nightkeep.records.holds import Hold, release
from nightkeep.records.json_files import Unreadable, parsed, read_kept, side_by_side
from nightkeep.records.store import bytes_of, why_not
from nightkeep.redaction import redacted
from nightkeep.storage.kept import KeptFile

RELEASED: Final = "released"
"""Key of a document's extras: how the hold that its run put on the table was released."""
_TRIES: Final = 10
_MOST: Final = 100
"""How many releases of a table are kept, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A release from the holds of these runs, none if the hold could not be read. `hold`: the hold as it was."""

    table: str
    runs: tuple[str, ...]
    user: str
    at: datetime
    reason: str | None = None
    hold: Mapping[str, object] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)

    @staticmethod
    def of(hold: Hold | Unreadable, table: str, *, user: str, at: datetime, reason: str | None) -> Released:
        runs = hold.runs if isinstance(hold, Hold) else ()
        held = encode(hold) if isinstance(hold, Hold) else {"unreadable": str(hold)}
        return Released(table=table, runs=runs, user=user, at=at, reason=reason, hold=held)

    def __str__(self) -> str:
        named = f" of {', '.join(self.runs)}" if self.runs else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.table}: hold{named} released by {self.user} at {self.at:%Y-%m-%d %H:%M:%S} UTC{why}"


@dataclass(frozen=True, slots=True)
class DoneRelease:
    """A hold that was removed, and the release as it was kept. `unkept`: why it could not be."""

    hold: Hold | Unreadable
    released: Released
    unkept: str | None = None


def release_table(
    reports: str | Path,
    table: str,
    *,
    user: str,
    at: datetime,
    reason: str | None = None,
    before: Callable[[Hold | Unreadable], None] = lambda _: None,
) -> DoneRelease | None:
    """Remove the hold on a table, and keep who did so, when and why; None if there is none.

    `before` is as in `holds.release`, and EvidenceError is raised as there."""
    hold = release(reports, table, before=before)
    if hold is None:
        return None
    released = Released.of(hold, table, user=user, at=at, reason=reason)
    return DoneRelease(hold, released, keep_release(reports, released))


def account() -> str:
    """The name of the account of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"


def keep_release(reports: str | Path, released: Released) -> str | None:
    """Add a release to those of its table. Returns why it could not be kept; None if it is."""
    store, name = report_store(reports), releases_name(released.table)
    try:
        for _ in range(_TRIES):
            read, earlier = _standing(reports, released.table)
            kept = [*map(encode, (*earlier, released))][-_MOST:]
            if store.swap(name, bytes_of(json.dumps(redacted(kept), indent=2) + "\n"), read=read):
                return None
    except (OSError, CorruptMetadata) as failure:
        return why_not(failure) if isinstance(failure, OSError) else str(failure)
    return "others are writing it"


def read_releases(reports: str | Path, table: str) -> tuple[Released, ...]:
    """The releases of a table, oldest first; none if they cannot be read."""
    try:
        return _standing(reports, table)[1]
    except (OSError, CorruptMetadata):
        return ()


def releases_of(reports: str | Path, tables: Iterable[str]) -> dict[str, tuple[Released, ...]]:
    """The releases by table, of tables that have any. The folder is listed once, as few tables were ever on hold."""
    store = report_store(reports)
    try:
        there = {f"{HOLDS}/{each.name}" for each in store.list(HOLDS)}
    except OSError:
        return {}
    held = [table for table in tables if releases_name(table) in there]
    return dict(zip(held, side_by_side(store, partial(read_releases, reports), held), strict=True))


def with_release(document: RunDocument, releases: tuple[Released, ...]) -> RunDocument:
    """The document with the last release from the hold of its run, if there was one."""
    last = next((each for each in reversed(releases) if document.run_id in each.runs), None)
    if last is None:
        return document
    shown = {"user": last.user, "at": last.at.isoformat(), "reason": last.reason}
    return replace(document, extra={**document.extra, RELEASED: shown})


def _standing(reports: str | Path, table: str) -> tuple[KeptFile | None, tuple[Released, ...]]:
    """The file as it was read, None if there is none, and the releases in it. Raises CorruptMetadata and OSError."""
    store, name = report_store(reports), releases_name(table)
    try:
        read = read_kept(store, name)
    except FileNotFoundError:
        return None, ()
    address = store.address(name)
    listed = parsed(read, address)
    if not isinstance(listed, list):
        raise CorruptMetadata(address, "a list of releases", type(listed).__name__)
    return read, tuple(decode(Released, each, address) for each in listed)
