"""Table metadata -> the snapshots that may expire -> one commit without them.

RemoveSnapshots.java; Iceberg table spec, "Snapshot Retention Policy". A branch keeps its newest snapshots by number and
by age, a tag its one snapshot. Main never expires. A snapshot in no branch or tag expires by its age alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from nightkeep.errors import CorruptMetadata, UnknownOutcome, kind_of
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.formats.iceberg.metadata.own_format import require_iceberg_only
from nightkeep.formats.iceberg.metadata.remove_snapshots import RemovedSnapshots
from nightkeep.formats.iceberg.metadata.table_metadata import (
    MAIN,
    Raw,
    ancestors,
    head,
    integer,
    properties,
    refs,
    text,
)
from nightkeep.formats.iceberg.retention.referenced_files import SnapshotFiles, snapshot_roots
from nightkeep.formats.iceberg.retention.table_files import refuse_upkeep
from nightkeep.model import Run
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import ExpireRequest, Expiry
from nightkeep.storage import Storage
from nightkeep.storage.times import happened_ms


def expiry(table: str, handle: TableHandle, request: ExpireRequest) -> Expiry[SnapshotFiles]:
    """As `plan_expiry`, of the table now. Its `forget` plans again, and commits only if all of it may still expire."""
    planned, removed = plan_expiry(table, handle.whole(), request, handle.storage)
    return replace(planned, forget=partial(forget, table, handle, request, removed))


def plan_expiry(
    table: str, loaded: tuple[Raw, str], request: ExpireRequest, storage: Storage
) -> tuple[Expiry[SnapshotFiles], RemovedSnapshots]:
    """Snapshots that no branch or tag keeps, and branches and tags past their own maximum age.

    Nothing expires if no snapshot does. Raises RefusedTable, CorruptMetadata.
    """
    raw, location = loaded
    refuse_upkeep(table, loaded)
    require_iceberg_only(table, storage, raw)
    kept, ended = _judged(_Rules(raw, location, request, storage))
    snapshots = head(raw, subject=location).snapshots
    gone = {number for number in snapshots if number not in kept}
    # Protect no files that expiring snapshots removed: the snapshots that need them expire too.
    expiring = [root for root in snapshot_roots(table, loaded, since_ms=_FOREVER) if root.version in gone]
    expiring.sort(key=lambda root: (integer(snapshots[root.version or 0], "timestamp-ms", subject=location), root.id))
    notes = tuple(f"{_kind(raw, location, name)} {name} is too old and goes with them" for name, _ in sorted(ended))
    reasons = tuple((str(number), reason) for number, reason in kept.items())
    planned = Expiry(tuple(expiring), reasons, notes if gone else ())
    return planned, RemovedSnapshots(frozenset(gone), ended, request.now_ms)


def forget(table: str, handle: TableHandle, request: ExpireRequest, removed: RemovedSnapshots, run: Run) -> bool:
    """Remove snapshots, branches and tags in one commit. Returns True also if they are gone already.

    The commit adds no snapshot, so nothing in it names `run`.

    Returns False, and changes nothing, if one of them must stay now (for example for a new tag), or if another writer
    committed first. Raises UnknownOutcome if the outcome of the commit is unknown.
    """
    loaded = handle.whole()
    if _is_done(loaded, removed):
        return True
    if not _may_still_go(_Rules(*loaded, request, handle.storage), removed):
        return False
    try:
        return handle.forget(loaded, removed)
    except OSError as failure:
        if _is_done(handle.whole(), removed):
            return True
        raise UnknownOutcome(f"{table}: expiry of {len(removed.snapshots)} snapshots", "an answer", str(failure)) from (
            failure
        )


_MAX_AGE: Final = "history.expire.max-snapshot-age-ms"
_MIN_KEPT: Final = "history.expire.min-snapshots-to-keep"
_MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
_FOREVER: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class _Rules:
    """The table's own options and those of the request; the one that keeps more counts."""

    raw: Raw
    subject: str
    request: ExpireRequest
    storage: Storage

    def made_ms(self, snapshot: Raw) -> int:
        """The snapshot's time in ms. A time in the future is replaced by that of its manifest list's file."""
        now_ms, stated_ms = self.request.now_ms, integer(snapshot, "timestamp-ms", subject=self.subject)
        listed = snapshot.get("manifest-list") if stated_ms > now_ms else None
        stored = self.storage.stat(name_in(self.storage, listed)) if isinstance(listed, str) else None
        return happened_ms(now_ms, (stated_ms, *(() if stored is None else (stored.modified_ms,))))

    def max_age_ms(self, ref: Raw) -> int:
        own = self._of(ref, "max-snapshot-age-ms", _MAX_AGE, 5 * DAY_MS)
        requested = self.request.older_than_ms
        return own if requested is None else max(own, requested)

    def min_kept(self, ref: Raw) -> int:
        return max(1, self._of(ref, "min-snapshots-to-keep", _MIN_KEPT, 1), self.request.retain_last or 1)

    def max_ref_age_ms(self, ref: Raw) -> int:
        return self._of(ref, "max-ref-age-ms", _MAX_REF_AGE, _FOREVER)

    def _of(self, ref: Raw, own: str, key: str, default: int) -> int:
        if ref.get(own) is not None:
            return integer(ref, own, subject=self.subject)
        value = properties(self.raw, subject=self.subject).get(key, str(default))
        try:
            return int(value)
        except ValueError as failure:
            raise CorruptMetadata(f"{self.subject}: {key}", "a number", kind_of(value)) from failure


def _judged(rules: _Rules) -> tuple[Mapping[int, str], frozenset[tuple[str, int]]]:
    """Snapshots that stay, each with a reason; and branches and tags that expire, each with its snapshot."""
    raw, subject, request = rules.raw, rules.subject, rules.request
    times = {number: rules.made_ms(each) for number, each in head(raw, subject=subject).snapshots.items()}
    staying, ended = _refs(raw, subject, times, rules=rules)
    kept: dict[int, str] = {}
    referenced = set[int]()
    for name, ref in staying.items():
        line = _line(raw, ref, subject)
        referenced.update(line)
        kept.setdefault(line[0], f"{_kind(raw, subject, name)} {name}")
        for number, reason in _kept_of_branch(name, line, times, rules=rules, ref=ref):
            kept.setdefault(number, reason)
    since_ms = request.now_ms - rules.max_age_ms({})
    for number in [each for each in times if each not in kept]:
        if number in request.keep:
            kept[number] = "it was asked to stay"
        elif number not in referenced and times[number] >= since_ms:
            kept[number] = "of no branch and no tag, but young"
    return kept, ended


def _refs(
    raw: Raw, subject: str, times: Mapping[int, int], *, rules: _Rules
) -> tuple[Mapping[str, Raw], frozenset[tuple[str, int]]]:
    """Branches and tags that stay, and those that are too old, each with its snapshot."""
    staying, ended = {}, set()
    for name, ref in _every_ref(raw, subject).items():
        number = integer(ref, "snapshot-id", subject=subject)
        if number not in times:
            raise CorruptMetadata(f"{subject}: {name}", "a snapshot that the table has", str(number))
        if name != MAIN and rules.request.now_ms - times[number] > rules.max_ref_age_ms(ref):
            ended.add((name, number))
        else:
            staying[name] = ref
    return staying, frozenset(ended)


def _line(raw: Raw, ref: Raw, subject: str) -> tuple[int, ...]:
    """A branch's snapshots, newest first; for a tag its one snapshot."""
    number = integer(ref, "snapshot-id", subject=subject)
    return tuple(ancestors(raw, number, subject=subject)) if ref.get("type") == "branch" else (number,)


def _kept_of_branch(
    name: str, line: tuple[int, ...], times: Mapping[int, int], *, rules: _Rules, ref: Raw
) -> Iterator[tuple[int, str]]:
    """Yield snapshots that the branch keeps, newest first, up to the first that may expire: older ones expire too."""
    least, since_ms = rules.min_kept(ref), rules.request.now_ms - rules.max_age_ms(ref)
    for place, number in enumerate(line):
        if place >= least and times[number] < since_ms:
            return
        yield number, f"among the last {least} of branch {name}" if place < least else f"young, of branch {name}"


def _every_ref(raw: Raw, subject: str) -> Mapping[str, Raw]:
    """All branches and tags. Main is included even if old metadata has only the current snapshot's id."""
    named, current = refs(raw, subject=subject), head(raw, subject=subject).current
    if MAIN in named or current is None:
        return named
    return {MAIN: {"type": "branch", "snapshot-id": current}, **named}


def _kind(raw: Raw, subject: str, name: str) -> str:
    return text(_every_ref(raw, subject)[name], "type", subject=subject)


def _may_still_go(rules: _Rules, removed: RemovedSnapshots) -> bool:
    kept, ended = _judged(rules)
    there = head(rules.raw, subject=rules.subject).snapshots.keys()
    return removed.snapshots <= there - kept.keys() and removed.refs <= ended


def _is_done(loaded: tuple[Raw, str], removed: RemovedSnapshots) -> bool:
    raw, location = loaded
    there = head(raw, subject=location).snapshots.keys()
    return not removed.snapshots & there and not {name for name, _ in removed.refs} & refs(raw, subject=location).keys()
