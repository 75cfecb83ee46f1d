"""Candidate metadata against the bytes it speaks of: counts, ranges, levels, statistics, vectors, listing.

Nothing here believes what the rewrite reported: every number is taken again from staged bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.columns import (
    KEY_PREFIX,
    KIND,
    RETRACT_KINDS,
    SEQUENCE,
    FileReader,
    key_columns,
    value_columns,
)  # fmt: skip
from nightkeep.formats.paimon.deletes import index_path, read_vectors
from nightkeep.formats.paimon.metadata import Bucket, DataFile, PaimonSnapshot
from nightkeep.formats.paimon.scan import tied_keys
from nightkeep.formats.paimon.values import canonical
from nightkeep.kernels.arrow_buffers import Array, ChunkedArray
from nightkeep.model import UnitKey
from nightkeep.storage import Storage

_NAMED_KEYS = 5
"""Keys spelled out in a fault; the rest is a count."""


def version_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> tuple[str, ...]:
    """Totals that disagree with the files, and any change outside the touched buckets."""
    return (
        *_total_faults(parent, "parent"),
        *_total_faults(candidate, "candidate"),
        *_delta_faults(parent, candidate),
        *_stray_changes(parent, candidate, touched),
        *_other_indexes(parent, candidate, touched),
    )


def _total_faults(snapshot: PaimonSnapshot, side: str) -> Iterator[str]:
    """A manifest or file that this reader missed shows here: other writers counted those rows."""
    held = sum(file.rows for unit in snapshot.units for file in unit.files)
    told = int(str(snapshot.raw["totalRecordCount"]))
    if held != told:
        yield f"{side} snapshot {snapshot.version}: totalRecordCount {told}, live files hold {held} rows"


def _delta_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot) -> Iterator[str]:
    totals = [int(str(snapshot.raw["totalRecordCount"])) for snapshot in (parent, candidate)]
    told = candidate.raw.get("deltaRecordCount")
    if told != totals[1] - totals[0]:
        yield f"deltaRecordCount {told}, totals go from {totals[0]} to {totals[1]}"


def _stray_changes(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    for key in sorted(parent.buckets.keys() | candidate.buckets.keys()):
        if key in touched:
            continue
        if _identity(parent.buckets.get(key)) != _identity(candidate.buckets.get(key)):
            yield f"{key}: changed, though no unit of it was worked on"
    if candidate.raw["schemaId"] != parent.schema.id:
        yield f"schema id {candidate.raw['schemaId']}, expected its parent's, {parent.schema.id}"


def _identity(bucket: Bucket | None) -> tuple[object, ...]:
    # A version no longer lists a bucket that ran empty before it.
    if bucket is None:
        return (None, [])
    return (bucket.index_file, [file.record for file in bucket.files])


def _other_indexes(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Index entries that are not the touched buckets' vectors must be there again, unchanged."""
    ours = {candidate.buckets[key].index_file for key in touched}
    ours |= {parent.buckets[key].index_file for key in touched if key in parent.buckets}
    before = [r for r in parent.index_records if r["_FILE_NAME"] not in ours]
    after = [r for r in candidate.index_records if r["_FILE_NAME"] not in ours]
    if sorted(map(repr, before)) != sorted(map(repr, after)):
        yield "index manifest: entries of other buckets or other indexes changed"


def unit_faults(storage: Storage, base: Bucket, candidate: Bucket) -> tuple[str, ...]:
    """What is wrong with one touched bucket of the candidate; files that were there before are not read again."""
    known = {file.name: file for file in base.files}
    fresh = [file for file in candidate.files if file.name not in known]
    return (
        *_tie_faults(storage, base),
        *_listing_faults(storage, candidate),
        *_range_faults(candidate),
        *_vector_faults(storage, candidate),
        *(fault for file in candidate.files if file.name in known for fault in _kept_faults(known[file.name], file)),
        *(fault for file in fresh for fault in _file_faults(storage, candidate, file)),
    )


def _tie_faults(storage: Storage, bucket: Bucket) -> Iterator[str]:
    """Keys whose newest row nobody can tell: writers that number rows independently give two rows one number."""
    spans = sorted((file.min_sequence, file.max_sequence) for file in bucket.files)
    if all(left[1] < right[0] for left, right in pairwise(spans)):
        return
    keys = tied_keys(storage, bucket)
    if keys:
        named = "; ".join(keys[:_NAMED_KEYS])
        yield f"overlapping sequence numbers of two writers: {len(keys)} keys have two newest rows, such as {named}"


def _kept_faults(before: DataFile, after: DataFile) -> Iterator[str]:
    """An upgrade changes a file's level; everything else that readers trust stays as it was written."""
    changed = [key for key in before.record.keys() | after.record.keys() if key != "_LEVEL"]
    changed = [key for key in changed if before.record.get(key) != after.record.get(key)]
    if changed:
        yield f"{after.name}: {', '.join(sorted(changed))} changed, though its bytes did not"


def _listing_faults(storage: Storage, bucket: Bucket) -> Iterator[str]:
    listed = {stored.name: stored.bytes for stored in storage.list(bucket.folder)}
    for file in bucket.files:
        size = listed.get(bucket.path(file))
        if size != file.bytes:
            found = "no such file" if size is None else f"{size} bytes"
            yield f"{bucket.path(file)}: manifest says {file.bytes} bytes, the folder has {found}"


def _range_faults(bucket: Bucket) -> Iterator[str]:
    """Files of one level must not overlap in key range; a file's own range must not be inverted."""
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
    if bucket.index_record is not None:
        name = index_path(bucket, str(bucket.index_record["_FILE_NAME"]))
        size, told = len(storage.read(name)), bucket.index_record["_FILE_SIZE"]
        if size != told:
            yield f"{name}: index manifest says {told} bytes, the file has {size}"


def _file_faults(storage: Storage, bucket: Bucket, file: DataFile) -> Iterator[str]:
    """One new file against its metadata record, from its bytes alone."""
    keys = key_columns(bucket)
    found = FileReader(storage, bucket, file).read([*keys, SEQUENCE, KIND, *value_columns(bucket)])
    subject = bucket.path(file)
    if file.rows == 0:
        yield f"{subject}: no rows, expected no file"
        return
    if bool(pc.any(pc.is_in(found.column(KIND), pa.array(RETRACT_KINDS, pa.int8()))).as_py()):
        yield f"{subject}: holds retracts, which readers through vectors would show"
    if file.delete_rows != 0:
        yield f"{subject}: deleteRowCount {file.delete_rows}, expected 0 or readers merge the bucket again"
    edges = pc.min_max(found.column(SEQUENCE))
    sequences = (edges["min"].as_py(), edges["max"].as_py())
    if sequences != (file.min_sequence, file.max_sequence):
        told = f"{file.min_sequence} to {file.max_sequence}"
        yield f"{subject}: sequence numbers {sequences[0]} to {sequences[1]}, metadata says {told}"
    yield from _key_faults(found, bucket, file)
    yield from _statistic_faults(found, bucket, file)


def _key_faults(found: pa.Table, bucket: Bucket, file: DataFile) -> Iterator[str]:
    schema, keys = bucket.schemas.current, key_columns(bucket)
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    subject = bucket.path(file)
    for name in keys:
        if not _same(found.column(name), found.column(name.removeprefix(KEY_PREFIX))):
            yield f"{subject}: {name} differs from the value column it repeats"
    edges = [
        tuple(canonical(found.column(name)[row], kind) for name, kind in zip(keys, types, strict=True))
        for row in (0, found.num_rows - 1)
    ]
    told = (file.min_key, file.max_key)
    if [sort_key(edge, types) for edge in edges] != [sort_key(edge, types) for edge in told]:
        yield f"{subject}: keys from {edges[0]} to {edges[1]}, metadata says {told[0]} to {told[1]}"
    if not _ascending(found, keys):
        yield f"{subject}: keys do not ascend strictly"


def _same(left: ChunkedArray, right: ChunkedArray) -> bool:
    return left.combine_chunks().equals(right.combine_chunks()) or _same_bits(left, right)


def _same_bits(left: ChunkedArray, right: ChunkedArray) -> bool:
    # Arrow says that NaN differs from itself.
    if not pa.types.is_floating(left.type) or left.null_count or right.null_count:
        return False
    kind = f"i{left.type.bit_width // 8}"
    return bool(np.array_equal(left.to_numpy().view(kind), right.to_numpy().view(kind)))


def _ascending(found: pa.Table, keys: Sequence[str]) -> bool:
    """Whether sorting by Arrow leaves every row where it is and no two neighbours are equal."""
    undecided = np.ones(max(0, found.num_rows - 1), np.bool_)
    for name in keys:
        column = found.column(name).combine_chunks()
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        if pa.types.is_floating(column.type):
            column = _float_order(column)
        before, after = column[:-1], column[1:]
        if bool((_flags(pc.less(after, before)) & undecided).any()):
            return False
        undecided &= _flags(pc.equal(after, before))
    return not bool(undecided.any())


def _float_order(column: Array) -> Array:
    values = column.to_numpy(zero_copy_only=False)
    bits = values.view(f"i{column.type.bit_width // 8}")
    top = np.iinfo(bits.dtype).max
    return pa.array(np.where(np.isnan(values), top, np.where(bits < 0, bits ^ top, bits)))


def _flags(array: Array) -> np.ndarray:
    flags: np.ndarray = array.to_numpy(zero_copy_only=False)
    return flags


def _statistic_faults(found: pa.Table, bucket: Bucket, file: DataFile) -> Iterator[str]:
    """Null counts exactly, and no value outside minimum and maximum: readers skip files by them."""
    schema = bucket.schemas.current
    listed = file.record["_VALUE_STATS_COLS"]
    names = [field.name for field in schema.fields] if listed is None else list(listed)
    keys = [(KEY_PREFIX + name, name) for name in schema.trimmed_keys]
    yield from _column_faults(found, bucket, file, "_KEY_STATS", keys)
    yield from _column_faults(found, bucket, file, "_VALUE_STATS", [(name, name) for name in names])


def _column_faults(
    found: pa.Table, bucket: Bucket, file: DataFile, section: str, columns: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """`columns` pairs the stored name with the schema's, in the order of the section's rows."""
    schema, told = bucket.schemas.current, file.record[section]
    types = [schema.field(name).type for _, name in columns]
    lows, highs = (decode_row(told[side], types) for side in ("_MIN_VALUES", "_MAX_VALUES"))
    for (stored, _), kind, low, high, nulls in zip(
        columns, types, lows, highs, told["_NULL_COUNTS"] or [None] * len(columns), strict=True
    ):
        column = found.column(stored)
        if nulls is not None and nulls != column.null_count:
            yield f"{bucket.path(file)}: {stored} has {column.null_count} nulls, statistics say {nulls}"
        if low is None and high is None:
            continue
        if pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py()):
            yield f"{bucket.path(file)}: {stored} has NaN, which no range of statistics covers"
        edges = pc.min_max(column)
        least, greatest = canonical(edges["min"], kind), canonical(edges["max"], kind)
        below = low is not None and least is not None and sort_key((least,), (kind,)) < sort_key((low,), (kind,))
        above = (
            high is not None and greatest is not None and sort_key((greatest,), (kind,)) > sort_key((high,), (kind,))
        )
        if below or above:
            yield f"{bucket.path(file)}: {stored} from {least!r} to {greatest!r}, statistics say {low!r} to {high!r}"
