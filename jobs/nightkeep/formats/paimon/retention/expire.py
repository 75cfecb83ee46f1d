"""Snapshots of the main branch -> those that may expire, and their removal: C/table/ExpireSnapshotsImpl, made safer.

Java removes files first and the snapshot last. If it is killed in between, unreadable snapshots are left. Here
snapshots go first, oldest first, and then the files that only they needed. Tags, branches and long-lived changelogs are
roots of their own and keep their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from nightkeep.encodings.documents import parse_object
from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of
from nightkeep.formats.paimon.metadata.branch import refuse_branch_sweep
from nightkeep.formats.paimon.metadata.locations import MAIN, branch_schemas, branches
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_int, option_millis
from nightkeep.formats.paimon.retention.roots import Kept, RootMetadata, roots
from nightkeep.model import Address, Run
from nightkeep.protocol.table_files import ExpireRequest, Expiry, Root
from nightkeep.storage import Storage
from nightkeep.storage.times import happened_ms

_HOUR_MS: Final = 60 * 60 * 1000
_NEVER: Final = (1 << 31) - 1
"""Integer.MAX_VALUE, the default of snapshot.num-retained.max."""
_CALLBACKS: Final = ("commit.callbacks", "tag.callbacks")


@dataclass(frozen=True, slots=True)
class ExpiryRules:
    """The table's options on how long snapshots are kept (A/CoreOptions.java). Ages in milliseconds."""

    least: int
    most: int
    age_ms: int
    limit: int

    @classmethod
    def of(cls, table: Address, schema: PaimonSchema) -> ExpiryRules:
        """The rules of a schema.

        Raises RefusedTable for changelogs that outlive their snapshots, CorruptMetadata for rules that contradict each
        other.
        """
        least = option_int(schema, "snapshot.num-retained.min", 10)
        most = option_int(schema, "snapshot.num-retained.max", _NEVER)
        age_ms = option_millis(schema, "snapshot.time-retained", _HOUR_MS)
        assert age_ms is not None
        if not 1 <= least <= most:
            raise CorruptMetadata(f"{table.name}: snapshots to retain", "1 <= least <= most", f"{least}, {most}")
        _refuse(table, schema, ExpiryRules(least, most, age_ms, 0))
        return cls(least, most, age_ms, option_int(schema, "snapshot.expire.limit", 50))


def _refuse(table: Address, schema: PaimonSchema, rules: ExpiryRules) -> None:
    longer = (
        option_int(schema, "changelog.num-retained.min", rules.least) > rules.least,
        option_int(schema, "changelog.num-retained.max", rules.most) > rules.most,
        (option_millis(schema, "changelog.time-retained", rules.age_ms) or 0) > rules.age_ms,
    )
    advice = "expire its snapshots with the engine's own procedure"
    if any(longer):
        raise RefusedTable(table.name, "changelogs retained longer than snapshots are not handled", advice)
    for key in _CALLBACKS:
        if schema.options.get(key):
            raise RefusedTable(table.name, f"option {key}: callbacks run in the engine's own expiry only", advice)


@dataclass(frozen=True, slots=True)
class _Bound:
    """Snapshots from `end` on are kept, because of `reason`."""

    end: int
    reason: str


def expiry(table: Address, storage: Storage, request: ExpireRequest) -> Expiry[RootMetadata]:
    """Snapshots that the table's options and the request both allow to expire, oldest first."""
    refuse_branch_sweep(table.name, table.location)
    rules = ExpiryRules.of(table, branch_schemas(storage, MAIN)[-1])
    snapshots = [root for root in roots(storage) if _is_snapshot(root.task)]
    ids = [root.task.id for root in snapshots]
    if ids != list(range(ids[0], ids[-1] + 1)):
        raise CorruptMetadata(f"{table.name}: snapshots", "ids without a gap", ", ".join(map(str, ids)))
    versions = [root.task for root in snapshots]
    made = _made(storage, versions, request.now_ms)
    bounds = [*_by_options(rules, made, request), *_consumers(storage), *_by_request(made, request)]
    first = max(ids[0], min(bound.end for bound in bounds))
    reason = min(bounds, key=lambda bound: bound.end).reason
    kept = tuple((version.name, reason) for version in versions if version.id >= first)
    going = tuple(root for root, number in zip(snapshots, ids, strict=True) if number < first)
    return Expiry(going, kept, tuple(_notes(storage)), forget=partial(forget, table, storage, request, going))


def forget(
    table: Address, storage: Storage, request: ExpireRequest, going: Sequence[Root[RootMetadata]], run: Run
) -> bool:
    """Remove the snapshots' JSON, oldest first, after moving the EARLIEST hint past them.

    False if one of them may no longer expire, or its id has another snapshot now. Snapshots that are gone already are
    skipped.
    """
    names = {root.id: root.task for root in going}
    there = {id for id, version in names.items() if storage.exists(version.name)}
    if not there:
        return True
    allowed = {root.id for root in expiry(table, storage, request).roots}
    if not there <= allowed:
        return False
    end = max(version.id for version in names.values()) + 1
    # Readers that start at the oldest snapshot must not pick one that is about to be removed.
    storage.replace("snapshot/EARLIEST", str(end).encode(), temporary=f"snapshot/{PaimonNaming(run).snapshot()}.tmp")
    for version in sorted(names.values(), key=lambda version: version.id):
        storage.delete(version.name)
    return True


def _is_snapshot(version: RootMetadata) -> bool:
    return version.kind is Kept.SNAPSHOT and version.branch == MAIN


@dataclass(frozen=True, slots=True)
class _Made:
    """A snapshot, and when it was committed."""

    id: int
    ms: int


def _made(storage: Storage, versions: Sequence[RootMetadata], now_ms: int) -> list[_Made]:
    """Snapshots with commit times, ascending. A time ahead of now is from a wrong clock.

    The time of its file or of the next snapshot replaces it.
    """
    changelogs: list[_Made] = []
    latest_ms = now_ms
    for version in reversed(versions):
        stored = storage.stat(version.name) if version.committed_ms > now_ms else None
        shown_ms = latest_ms if stored is None else stored.modified_ms
        latest_ms = happened_ms(now_ms, (version.committed_ms, shown_ms, latest_ms))
        changelogs.append(_Made(version.id, latest_ms))
    return changelogs[::-1]


def _by_options(rules: ExpiryRules, versions: Sequence[_Made], request: ExpireRequest) -> Iterator[_Bound]:
    earliest, latest = versions[0].id, versions[-1].id
    yield _Bound(latest - rules.least + 1, f"option snapshot.num-retained.min = {rules.least}")
    yield _Bound(earliest + rules.limit, f"option snapshot.expire.limit = {rules.limit}")
    # A snapshot's age counts from its successor's commit, because until then it was the latest.
    most = max(latest - rules.most + 1, earliest)
    young = _young(versions, request.now_ms - rules.age_ms, at_least=most)
    yield _Bound(young, f"option snapshot.time-retained = {rules.age_ms} ms")


def _by_request(versions: Sequence[_Made], request: ExpireRequest) -> Iterator[_Bound]:
    """The bounds of the request. None allows more than the table's options do."""
    for number in sorted(request.keep):
        if number >= versions[0].id:
            yield _Bound(number, f"snapshot {number} is the base of a run that is not checked yet")
    if request.retain_last is not None:
        yield _Bound(versions[-1].id - request.retain_last + 1, f"the last {request.retain_last} are to stay")
    if request.older_than_ms is not None:
        young = _young(versions, request.now_ms - request.older_than_ms, at_least=versions[0].id)
        yield _Bound(young, f"younger than {request.older_than_ms} ms")


def _young(versions: Sequence[_Made], before_ms: int, *, at_least: int) -> int:
    """The first snapshot, from `at_least` on, whose successor was committed at `before_ms` or later."""
    young = (old.id for old, new in pairwise(versions) if old.id >= at_least and new.ms >= before_ms)
    return min(young, default=versions[-1].id)


def _consumers(storage: Storage) -> Iterator[_Bound]:
    """Bounds by streaming readers' progress (C/consumer/ConsumerManager.java): the next snapshot that each will read.

    Option consumer.changelog-only allows such snapshots to expire, but only if changelogs outlive them.
    """
    for stored in storage.list("consumer"):
        if stored.name.startswith("consumer/consumer-"):
            yield _Bound(_next_snapshot(storage, stored.name), f"{stored.name} reads it next")


def _next_snapshot(storage: Storage, name: str) -> int:
    following = parse_object(storage.read(name), subject=name).get("nextSnapshot")
    if type(following) is not int:
        raise CorruptMetadata(name, "the number of its next snapshot", kind_of(following))
    return following


def _notes(storage: Storage) -> Iterator[str]:
    others = [branch.rstrip("/").rpartition("branch-")[2] for branch in branches(storage)[1:]]
    if others:
        yield f"snapshots of other branches stay: {', '.join(others)}"
