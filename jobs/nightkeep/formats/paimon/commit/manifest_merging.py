"""Manifests of the parent -> those of the next version's base list, merged as Java's commits merge them.

Follows ManifestFileMerger.java. Without it a table whose writers do not merge has one manifest more with every commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.entries import ADD, entry_identity
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool, option_bytes, option_int

_TARGET_BYTES: Final = 8 << 20
_FULL_BYTES: Final = 16 << 20
_MIN_COUNT: Final = 30


@dataclass(frozen=True, slots=True)
class ManifestAccess:
    """`read` gives the entries of a manifest by its record in a list, `write` makes a manifest and its record."""

    read: Callable[[Record], Sequence[Record]]
    write: Callable[[Sequence[Record]], Record]


@dataclass(frozen=True, slots=True)
class ManifestRules:
    """`target_bytes` of a manifest; the `least` number of small ones to merge; above `full_bytes` of manifests that are
    small or hold deletes, no delete stays."""

    target_bytes: int
    least: int
    full_bytes: int

    @classmethod
    def of(cls, schema: PaimonSchema) -> ManifestRules:
        return cls(
            target_bytes=option_bytes(schema, "manifest.target-file-size", _TARGET_BYTES) or 1,
            least=max(2, option_int(schema, "manifest.merge-min-count", _MIN_COUNT)),
            full_bytes=option_bytes(schema, "manifest.full-compaction-threshold-size", _FULL_BYTES) or 1,
        )


def merged_manifests(metas: Sequence[Record], schema: PaimonSchema, files: ManifestAccess) -> Sequence[Record]:
    """Manifests with the same live entries, in an order in which they can be applied."""
    if option_bool(schema, "manifest-sort.enabled"):
        # Java sorts their entries, by columns of its choice: that is left to its writers.
        return metas
    rules = ManifestRules.of(schema)
    changing = [meta for meta in metas if _must_change(meta, rules)]
    if sum(int(meta["_FILE_SIZE"]) for meta in changing) >= rules.full_bytes:
        return _without_deletes(metas, rules, files)
    return [meta for group in _groups(metas, rules) for meta in _merge_group(group, files)]


def _must_change(meta: Record, rules: ManifestRules) -> bool:
    return bool(meta["_NUM_DELETED_FILES"] > 0 or meta["_FILE_SIZE"] < rules.target_bytes)


def _without_deletes(metas: Sequence[Record], rules: ManifestRules, files: ManifestAccess) -> Sequence[Record]:
    """tryFullCompaction: large manifests stay as they are while all of their files are live."""
    gone = {
        entry_identity(entry)
        for meta in metas
        if meta["_NUM_DELETED_FILES"]
        for entry in files.read(meta)
        if entry["_KIND"] != ADD
    }
    kept: list[Record] = []
    entries: list[Record] = []
    changed: list[Record] = []
    for meta in metas:
        must = _must_change(meta, rules)
        if not must and not gone:
            kept.append(meta)
            continue
        live = [entry for entry in files.read(meta) if entry["_KIND"] == ADD and entry_identity(entry) not in gone]
        if must or len(live) < meta["_NUM_ADDED_FILES"]:
            changed.append(meta)
            entries += live
        else:
            kept.append(meta)
    if len(changed) < 2:
        return metas
    return [*kept, *(files.write(part) for part in _parts(entries, changed, rules))]


def _parts(entries: Sequence[Record], inputs: Sequence[Record], rules: ManifestRules) -> Iterator[Sequence[Record]]:
    """The entries of each new manifest. A manifest reaches the target size if entries are as long as before."""
    before = sum(meta["_NUM_ADDED_FILES"] + meta["_NUM_DELETED_FILES"] for meta in inputs)
    size = sum(int(meta["_FILE_SIZE"]) for meta in inputs)
    count = max(1, rules.target_bytes * before // max(1, size))
    return (entries[start : start + count] for start in range(0, len(entries), count))


def _groups(metas: Sequence[Record], rules: ManifestRules) -> Iterator[Sequence[Record]]:
    """tryMinorCompaction: neighbours that together reach the target size, and the rest if they are many."""
    group: list[Record] = []
    size = 0
    for meta in metas:
        group.append(meta)
        size += int(meta["_FILE_SIZE"])
        if size >= rules.target_bytes:
            yield group
            group, size = [], 0
    if len(group) >= rules.least:
        yield group
    else:
        yield from ([meta] for meta in group)


def _merge_group(group: Sequence[Record], files: ManifestAccess) -> Sequence[Record]:
    if len(group) == 1:
        return group
    entries = _collapsed(entry for meta in group for entry in files.read(meta))
    return [files.write(entries)] if entries else []


def _collapsed(entries: Iterable[Record]) -> Sequence[Record]:
    """Entries without files that are added and deleted among them. A delete of an earlier manifest's file stays."""
    held: dict[object, Record] = {}
    for entry in entries:
        identity = entry_identity(entry)
        if entry["_KIND"] == ADD and identity in held:
            raise CorruptMetadata(f"manifest entry {entry['_FILE']['_FILE_NAME']}", "a new file", "the opposite")
        if entry["_KIND"] == ADD or held.pop(identity, None) is None:
            held[identity] = entry
    return list(held.values())
