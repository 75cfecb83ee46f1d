"""A failed check -> a hold on its table, which only a release removes. What cannot be read is a hold."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from nightkeep.errors import CorruptMetadata, EvidenceError, Unreachable
from nightkeep.model import Operation
from nightkeep.places import is_address, report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra, RunDocument
from nightkeep.records.file_names import HOLDS, document_name, hold_name
from nightkeep.records.json_files import Unreadable, parsed, read_kept
from nightkeep.records.store import bytes_of, joined, why_not
from nightkeep.redaction import redacted
from nightkeep.storage.kept import KeptFile, KeptFiles

_TRIES: Final = 10
_MOST_EARLIER: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why operations must skip a table: a published version failed its check; and how to undo that version."""

    table: str
    run_id: str
    operation: Operation
    since: datetime
    reason: str | None = None
    base_version: int | None = None
    committed_version: int | None = None
    go_back: str | None = None
    extra: Extra = field(default_factory=dict)

    @property
    def runs(self) -> tuple[str, ...]:
        """The run, and those of earlier holds that it replaced."""
        earlier = self.extra.get("earlier")
        named = [each.get("run_id") for each in earlier if isinstance(each, dict)] if isinstance(earlier, list) else []
        return (self.run_id, *(each for each in named if isinstance(each, str)))


def hold(reports: str | Path, table: str, document: RunDocument) -> Hold:
    """Put `table` on hold because of `document`. Earlier holds of other runs are named in the new one as `earlier`."""
    store, name = report_store(reports), hold_name(table)
    for _ in range(_TRIES):
        standing = _standing(store, name, document.run_id)
        if standing is None:
            break
        reason = _reason(table, document, standing.earlier)
        if store.swap(name, _text(reason), read=standing.read):
            return reason
    # Nothing is known of an earlier hold, or others are faster: whoever holds the table, it is held.
    reason = _reason(table, document, ())
    store.write(name, _text(reason))
    return reason


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is at the place of a hold, None for nothing, and the holds of other runs that it lists, as JSON."""

    read: KeptFile | None = None
    earlier: Sequence[object] = ()


def _standing(store: KeptFiles, name: str, run_id: str) -> _Standing | None:
    """None if what is there cannot be read."""
    try:
        read = _read(store, name)
        found = _hold(store, name, read)
    except FileNotFoundError:
        return _Standing()
    except EvidenceError:
        return None
    listed = found.extra.get("earlier")
    earlier = [*listed] if isinstance(listed, list | tuple) else []
    if found.run_id != run_id:
        earlier.append(encode(replace(found, extra={})))
    return _Standing(read, earlier[-_MOST_EARLIER:])


def _reason(table: str, document: RunDocument, earlier: Sequence[object]) -> Hold:
    return Hold(
        table=table,
        run_id=document.run_id,
        operation=document.operation,
        since=document.finished_at,
        reason=document.reason,
        base_version=document.base_version,
        committed_version=document.committed_version,
        go_back=document.go_back,
        extra={"earlier": [*earlier]} if earlier else {},
    )


def _text(reason: Hold) -> bytes:
    return bytes_of(json.dumps(redacted(encode(reason)), indent=2) + "\n")


def hold_or_note(reports: str | Path, document: RunDocument) -> RunDocument:
    """Put the document's table on hold because of it. If no hold can be written, the document states what was done.

    The run's document is the hold then: on a full disk as a link, which needs no space. An unreadable hold counts too.
    """
    try:
        hold(reports, document.table, document)
        return document
    except OSError as failure:
        why = f"the hold cannot be written: {why_not(failure)}"
    name = document_name(document.table, run_id=document.run_id, operation=document.operation)
    try:
        report_store(reports).stand_in(name, hold_name(document.table))
        why += f"; the run's document holds the table until nightkeep release {shlex.quote(document.table)}"
    except FileExistsError:
        why += "; an earlier hold stands"
    except OSError:
        why += "; NOTHING HOLDS THE TABLE: stop what works on it"
    return replace(document, reason=joined(document.reason, why))


def held(reports: str | Path, table: str) -> Hold | None:
    """The hold on `table`, or None. Raises CorruptMetadata for an unreadable one, which counts as a hold too, and
    Unreachable where a bucket does not state whether there is one: then nothing may be done either."""
    store, name = report_store(reports), hold_name(table)
    try:
        return _hold(store, name, _read(store, name))
    except FileNotFoundError:
        return None


def holds_of(reports: str | Path, tables: Iterable[str]) -> tuple[str, ...]:
    """Those of the tables for which there is the file of a hold. The folder is listed once, as few tables are held;
    none if it cannot be listed."""
    named = [*tables]
    try:
        there = {f"{HOLDS}/{each.name}" for each in report_store(reports).list(HOLDS)} if named else set()
    except OSError:
        return ()
    return tuple(table for table in named if hold_name(table) in there)


def standing_holds(reports: str | Path, tables: Iterable[str]) -> dict[str, Hold | None]:
    """The holds on these tables, by table; None for one that cannot be read. Lists the folder once."""
    found: dict[str, Hold | None] = {}
    for table in holds_of(reports, tables):
        try:
            hold = held(reports, table)
        except (EvidenceError, Unreachable, OSError):
            found[table] = None
            continue
        if hold is not None:
            found[table] = hold
    return found


def release(
    reports: str | Path, table: str, *, before: Callable[[Hold | Unreadable], None] = lambda _: None
) -> Hold | Unreadable | None:
    """Remove the hold on `table`, also an unreadable one, and return it; None if there is none. `before` is called with
    the hold, and may raise to keep it.

    Raises EvidenceError if it cannot be removed, if a bucket does not state whether there is one, or if another one was
    written meanwhile.
    """
    store, name = report_store(reports), hold_name(table)
    read: KeptFile | None = None
    try:
        read = _read(store, name)
        found: Hold | Unreadable = _hold(store, name, read)
    except FileNotFoundError:
        return None
    except CorruptMetadata as failure:
        found = Unreadable.of(store.address(name), failure)
    before(found)
    _remove(store, name, read)
    return found


def _read(store: KeptFiles, name: str) -> KeptFile:
    if not is_address(store.root):
        return read_kept(store, name)
    try:
        return store.read(name)
    except FileNotFoundError:
        raise
    except OSError as failure:
        raise Unreachable(store.address(name), "a hold, or none", why_not(failure)) from failure
    except ValueError as failure:
        raise CorruptMetadata(store.address(name), "a hold", str(failure)) from failure


def _remove(store: KeptFiles, name: str, read: KeptFile | None) -> None:
    try:
        is_removed = store.remove(name, read=read)
    except OSError as failure:
        raise EvidenceError(store.address(name), "a hold that can be removed", why_not(failure)) from failure
    if not is_removed:
        raise EvidenceError(store.address(name), "the hold that was read", "another one, which stands; read it first")


def _hold(store: KeptFiles, name: str, read: KeptFile) -> Hold:
    return decode(Hold, parsed(read, store.address(name)), store.address(name))
