"""Parent and candidate -> faults of manifests: what lists state of them, what the snapshot states of the lists.

Readers skip a manifest by the partitions, buckets and levels that its list states (ManifestsReader.java), skip files by
the number of buckets in their entries, and read as many bytes of a list or manifest as are stated. So a wrong line
loses rows without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.metadata.entries import ADD, read_list, read_manifest
from nightkeep.formats.paimon.metadata.own_commits import EXPIRY_CLOCK, MERGED_PARENT
from nightkeep.formats.paimon.metadata.record_values import values_of
from nightkeep.formats.paimon.metadata.row_changes import DELETED_ROWS, SET, UPDATED_ROWS
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.metadata.values import Value
from nightkeep.model.run_names import COMMIT_USER
from nightkeep.storage import Storage

_LISTS = ("baseManifestList", "deltaManifestList", "changelogManifestList")
_KEPT = ("watermark", "logOffsets", "nextRowId")
"""Fields of a snapshot that only writers of rows change."""
_SEQUENCE = "sequence.generation.max-sequence-number"
_OWN = frozenset({EXPIRY_CLOCK, MERGED_PARENT, DELETED_ROWS, UPDATED_ROWS, SET, _SEQUENCE})


def manifest_faults(storage: Storage, parent: PaimonSnapshot, candidate: PaimonSnapshot) -> Iterator[str]:
    """Manifests of the parent must be listed as they were; new ones are read, and so are all lists."""
    yield from _snapshot_faults(parent, candidate)
    yield from _size_faults(storage, candidate)
    before = {meta["_FILE_NAME"]: meta for meta in (*parent.base_manifests, *parent.delta_manifests)}
    changes = candidate.raw.get(_LISTS[2])
    changelogs = () if changes is None else read_list(storage, str(changes)).records
    totals = {_place(unit): unit.total_buckets for unit in parent.units if unit.files}
    live = {(*_place(unit), file.name) for unit in candidate.units for file in unit.files}
    yield from _entry_faults((*candidate.delta_entries, *candidate.changelog_entries), totals)
    for meta in (*candidate.base_manifests, *candidate.delta_manifests, *changelogs):
        name = meta["_FILE_NAME"]
        if name not in before:
            entries = read_manifest(storage, meta).records
            # An entry of a file that is gone may be older than a change of the number of buckets.
            held = (e for e in entries if (e["_PARTITION"], e["_BUCKET"], e["_FILE"]["_FILE_NAME"]) in live)
            faults = chain(_line_faults(storage, meta, entries, candidate.schema), _entry_faults(held, totals))
            yield from (f"manifest {name}: {fault}" for fault in faults)
        elif values_of(before[name]) != values_of(meta):
            yield f"manifest {name}: its line in the list changed, though its bytes did not"


def _place(unit: Bucket) -> tuple[bytes, int | None]:
    return (unit.partition_bytes, unit.key.bucket)


def _snapshot_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot) -> Iterator[str]:
    raw = candidate.raw
    for name in _KEPT:
        if raw.get(name) != parent.raw.get(name):
            yield f"{name} {raw.get(name)}, expected its parent's, {parent.raw.get(name)}"
    if raw.get("statistics") not in (None, parent.raw.get("statistics")):
        yield f"statistics {raw['statistics']}, expected its parent's or none"
    if int(str(raw["timeMillis"])) < int(str(parent.raw["timeMillis"])):
        yield f"made at {raw['timeMillis']}, before its parent, at {parent.raw['timeMillis']}"
    if not str(raw["commitUser"]).startswith(COMMIT_USER):
        # Writers take a commit of their name for their own, and do not repeat what they think it did.
        yield f"commitUser {raw['commitUser']}, expected one that no other writer has"
    yield from _property_faults(parent, candidate)


def _property_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot) -> Iterator[str]:
    before, after = (_properties(side) for side in (parent, candidate))
    unknown = sorted(after.keys() - _OWN)
    if unknown:
        yield f"properties {', '.join(unknown)}, expected none that maintenance has no business with"
    if _SEQUENCE not in before and _SEQUENCE not in after:
        return
    # Writers number their rows from here on: after a lower number, older rows would win.
    fresh = [e["_FILE"]["_MAX_SEQUENCE_NUMBER"] for e in candidate.delta_entries if e["_KIND"] == ADD]
    least = max([int(str(before.get(_SEQUENCE, 0))), *fresh])
    if int(str(after.get(_SEQUENCE, -1))) < least:
        yield f"{_SEQUENCE} {after.get(_SEQUENCE)}, expected at least {least}"


def _properties(side: PaimonSnapshot) -> Mapping[str, object]:
    held = side.raw.get("properties")
    return held if isinstance(held, Mapping) else {}


def _size_faults(storage: Storage, candidate: PaimonSnapshot) -> Iterator[str]:
    for field in _LISTS:
        name, stated = candidate.raw.get(field), candidate.raw.get(f"{field}Size")
        size = None if name is None else len(storage.read(f"manifest/{name}"))
        if stated is not None and stated != size:
            yield f"{field}Size {stated}, the file has {size} bytes"


def _line_faults(storage: Storage, meta: Record, entries: Sequence[Record], schema: PaimonSchema) -> Iterator[str]:
    """Faults of a new manifest's line. Its counts were compared when it was read."""
    size = len(storage.read(f"manifest/{meta['_FILE_NAME']}"))
    if meta["_FILE_SIZE"] != size:
        yield f"its list states {meta['_FILE_SIZE']} bytes, the file has {size}"
    if meta["_SCHEMA_ID"] != schema.id:
        yield f"its list states schema {meta['_SCHEMA_ID']}, expected {schema.id}"
    yield from place_faults(meta, entries)
    if meta.get("_MIN_ROW_ID") is not None or meta.get("_MAX_ROW_ID") is not None:
        yield "its list states row ids, which the table does not have"
    types = [field.type for field in schema.select(schema.partition_keys)]
    yield from partition_faults(meta["_PARTITION_STATS"], [decode_row(e["_PARTITION"], types) for e in entries], types)


def place_faults(line: Record, entries: Sequence[Record]) -> Iterator[str]:
    """Faults unless the buckets and levels that a manifest's line states cover those of its entries."""
    for what, numbers in (
        ("BUCKET", [entry["_BUCKET"] for entry in entries]),
        ("LEVEL", [entry["_FILE"]["_LEVEL"] for entry in entries]),
    ):
        low, high = line.get(f"_MIN_{what}"), line.get(f"_MAX_{what}")
        if numbers and ((low is not None and low > min(numbers)) or (high is not None and high < max(numbers))):
            yield f"its list states {what.lower()}s {low} to {high}, its entries have {min(numbers)} to {max(numbers)}"


def partition_faults(stats: Record, rows: Sequence[tuple[Value, ...]], types: Sequence[PaimonType]) -> Iterator[str]:
    """Faults unless the bounds of each partition column cover every entry's value, and its nulls are counted."""
    lows, highs = (decode_row(stats[side], types) for side in ("_MIN_VALUES", "_MAX_VALUES"))
    counts = stats["_NULL_COUNTS"] or [None] * len(types)
    for place, kind in enumerate(types):
        held = [sort_key((row[place],), (kind,)) for row in rows if row[place] is not None]
        nulls = len(rows) - len(held)
        if counts[place] is not None and counts[place] != nulls:
            yield f"its list counts {counts[place]} nulls of partition column {place}, its entries have {nulls}"
        ends = [sort_key((end,), (kind,)) for end in (lows[place], highs[place]) if end is not None]
        if held and (len(ends) < 2 or min(held) < ends[0] or max(held) > ends[1]):
            yield f"its list states {lows[place]} to {highs[place]} of partition column {place}, which misses an entry"


def _entry_faults(entries: Iterable[Record], totals: Mapping[tuple[bytes, int | None], int]) -> Iterator[str]:
    for entry in entries:
        expected = totals.get((entry["_PARTITION"], entry["_BUCKET"]))
        if expected is not None and entry["_TOTAL_BUCKETS"] != expected:
            yield f"an entry of {entry['_TOTAL_BUCKETS']} buckets, the table has {expected}"
            return
