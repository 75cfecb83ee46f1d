"""Candidate metadata and its files -> faults: totals, ranges, levels, vectors, listing, and every new file.

No number of the rewrite is trusted: all are computed again from staged bytes. Metadata, data files and vectors are read
with the same readers as in the rewrite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import naming
from nightkeep.formats.paimon.deletes.bucket_vectors import index_path, read_vectors
from nightkeep.formats.paimon.gate.audited_rows import NONE_SHOWN, AuditedRows
from nightkeep.formats.paimon.gate.changelog_audit import changelog_faults, changelog_file_faults
from nightkeep.formats.paimon.gate.file_audit import file_faults
from nightkeep.formats.paimon.gate.kept_order import order_faults
from nightkeep.formats.paimon.gate.scan import count_tied_keys
from nightkeep.formats.paimon.metadata.binary_row import sort_key
from nightkeep.formats.paimon.metadata.entries import DELETE
from nightkeep.formats.paimon.metadata.record_values import values_of
from nightkeep.formats.paimon.metadata.row_totals import total_rows
from nightkeep.formats.paimon.metadata.schema import skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.gate.listing import listing_faults
from nightkeep.gate.untouched import stray_changes
from nightkeep.model import UnitKey
from nightkeep.storage import Storage


def version_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> tuple[str, ...]:
    """Faults of the version: totals that differ from the files, and changes outside the touched buckets."""
    return (
        *_total_faults(parent, "parent"),
        *_total_faults(candidate, "candidate"),
        *_delta_faults(parent, candidate),
        *_order_faults(candidate),
        *stray_changes(parent.by_key, candidate.by_key, touched, _is_same),
        *_schema_faults(parent, candidate),
        *_other_indexes(parent, candidate, touched),
        *changelog_faults(candidate, touched),
    )


def _total_faults(snapshot: PaimonSnapshot, side: str) -> Iterator[str]:
    """Wrong totals. A manifest or file that this reader missed shows here, because other writers counted its rows."""
    held = sum(file.rows for unit in snapshot.units for file in unit.files)
    stated = total_rows(snapshot) if side == "parent" else int(str(snapshot.raw["totalRecordCount"]))
    if held != stated:
        yield f"{side} snapshot {snapshot.version}: totalRecordCount {stated}, live files hold {held} rows"


def _delta_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot) -> Iterator[str]:
    totals = [total_rows(parent), int(str(candidate.raw["totalRecordCount"]))]
    stated = candidate.raw.get("deltaRecordCount")
    if stated != totals[1] - totals[0]:
        yield f"deltaRecordCount {stated}, totals go from {totals[0]} to {totals[1]}"


def _order_faults(candidate: PaimonSnapshot) -> Iterator[str]:
    """Wrong order of entries: expiry deletes paths whose last entry is DELETE, live or not (FileDeletionBase)."""
    last = {
        (entry["_PARTITION"], entry["_BUCKET"], entry["_FILE"]["_FILE_NAME"]): entry["_KIND"]
        for entry in candidate.delta_entries
    }
    live = {(unit.partition_bytes, unit.key.bucket, file.name) for unit in candidate.units for file in unit.files}
    for _, bucket, name in sorted(place for place, kind in last.items() if kind == DELETE and place in live):
        yield f"{name} of bucket {bucket}: its DELETE follows its ADD, so that expiry would remove a live file"


def _schema_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot) -> Iterator[str]:
    if candidate.raw["schemaId"] != parent.schema.id:
        yield f"schema id {candidate.raw['schemaId']}, expected its parent's, {parent.schema.id}"


def _is_same(before: Bucket | None, after: Bucket | None) -> bool:
    (names, files), (other_names, others) = _identity(before), _identity(after)
    # Most records are equal as they stand, and one that another release wrote is equal by its values.
    return names == other_names and (files == others or [*map(values_of, files)] == [*map(values_of, others)])


def _identity(bucket: Bucket | None) -> tuple[Sequence[str], Sequence[Record]]:
    return ((), []) if bucket is None else (bucket.index_files, [file.record for file in bucket.files])


def _other_indexes(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Changed index entries. All but the touched buckets' vectors must be there unchanged."""
    sides = (side.by_key[key] for side in (parent, candidate) for key in touched if key in side.by_key)
    ours = {name for bucket in sides for name in bucket.index_files}
    before, after = (
        sorted(repr(values_of(record)) for record in side.index_records if record["_FILE_NAME"] not in ours)
        for side in (parent, candidate)
    )
    if before != after:
        yield "index manifest: entries of other buckets or other indexes changed"


def unit_faults(
    storage: Storage, base: Bucket, candidate: Bucket, *, shown: AuditedRows = NONE_SHOWN
) -> tuple[str, ...]:
    """Faults of one touched bucket of the candidate. Data files of the base are not read again; rows of new files are
    `shown`."""
    base_files = {file.name: file for file in base.files}
    fresh = [file for file in candidate.files if file.name not in base_files]
    with naming(candidate.key, "rows as their schema and level promise"):
        return (
            *_tie_faults(storage, base),
            *listing_faults(storage, _sizes(candidate), source="manifest"),
            *_range_faults(candidate),
            *_vector_faults(storage, candidate),
            *(
                fault
                for file in candidate.files
                if file.name in base_files
                for fault in kept_faults(base_files[file.name], file)
            ),
            *(fault for file in fresh for fault in file_faults(storage, candidate, file, shown=shown)),
            *(() if skips_level0(candidate.schemas.current) else order_faults(storage, base, candidate)),
            *(fault for file in candidate.changelog for fault in changelog_file_faults(storage, candidate, file)),
        )


def _sizes(bucket: Bucket) -> dict[str, int]:
    return {bucket.path(file): file.bytes for file in (*bucket.files, *bucket.changelog)}


def _tie_faults(storage: Storage, bucket: Bucket) -> Iterator[str]:
    """Keys without a definite newest row: writers that number rows independently gave two rows one number."""
    spans = sorted((file.min_sequence, file.max_sequence) for file in bucket.files)
    if all(left[1] < right[0] for left, right in pairwise(spans)):
        return
    keys = count_tied_keys(storage, bucket)
    if keys:
        yield f"overlapping sequence numbers of two writers: {keys} keys have two newest rows"


def kept_faults(before: PaimonDataFile, after: PaimonDataFile) -> Iterator[str]:
    """Faults of a kept file. An upgrade may change only its level."""
    was, now = values_of(before.record), values_of(after.record)
    changed = [key for key in was.keys() | now.keys() if key != "_LEVEL" and was.get(key) != now.get(key)]
    if changed:
        yield f"{after.name}: {', '.join(sorted(changed))} changed, though its bytes did not"


def _range_faults(bucket: Bucket) -> Iterator[str]:
    """Faults of key ranges: files of one level must not overlap, and no range may be inverted."""
    schema = bucket.schemas.current
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    spans = sorted(
        (file.level, sort_key(file.min_key, types), sort_key(file.max_key, types), file.name)
        for file in bucket.files
        if file.level > 0
    )
    for level, low, high, name in spans:
        if high < low:
            yield f"{name}: its largest key on level {level} is below its smallest"
    for left, right in pairwise(spans):
        if left[0] == right[0] and right[1] <= left[2]:
            yield f"level {left[0]}: key ranges of {left[3]} and {right[3]} overlap"


def _vector_faults(storage: Storage, bucket: Bucket) -> Iterator[str]:
    rows = {file.name: file.rows for file in bucket.files}
    for name, vector in read_vectors(storage, bucket).items():
        if name not in rows:
            yield f"deletion vector of {name}, which is not a file of the bucket"
        elif vector and vector.max() >= rows[name]:
            yield f"deletion vector of {name}: position {vector.max()} of {rows[name]} rows"
    for record in bucket.index_records:
        name = index_path(bucket, str(record["_FILE_NAME"]))
        size, stated = len(storage.read(name)), record["_FILE_SIZE"]
        if size != stated:
            yield f"{name}: index manifest states {stated} bytes, the file has {size}"
