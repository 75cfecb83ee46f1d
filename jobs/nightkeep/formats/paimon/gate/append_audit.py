"""Candidate of a table without keys -> faults: its vector files, and every new data file.

No number of the rewrite is trusted: all are computed again from staged bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.errors import naming
from nightkeep.formats.paimon.data.columns import PaimonFileReader, value_columns
from nightkeep.formats.paimon.deletes.append_vectors import vectors_of
from nightkeep.formats.paimon.deletes.bucket_vectors import index_path
from nightkeep.formats.paimon.gate.append_order import order_faults
from nightkeep.formats.paimon.gate.append_scan import PROMISE
from nightkeep.formats.paimon.gate.audit import kept_faults
from nightkeep.formats.paimon.gate.audited_rows import NONE_SHOWN, AuditedRows
from nightkeep.formats.paimon.gate.file_audit import record_faults, statistic_faults, with_chunk
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.gate.column_range import ColumnRange
from nightkeep.gate.listing import listing_faults
from nightkeep.model import UnitKey
from nightkeep.storage import Storage


def vector_file_faults(parent: PaimonSnapshot, candidate: PaimonSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Faults of index entries: new vectors of files that do not exist. Vector files that stayed may have such, because
    Paimon up to 1.4 left them."""
    for key in touched:
        bucket = candidate.by_key[key]
        known = set(parent.by_key[key].index_files) if key in parent.by_key else set[str]()
        live = {file.name for file in bucket.files}
        fresh = (record for record in bucket.index_records if record["_FILE_NAME"] not in known)
        lost = sorted({where.data_file for record in fresh for where in vector_ranges(record)} - live)
        yield from (f"{key}: deletion vector of {name}, which is not a file of the bucket" for name in lost)


def unit_faults(
    storage: Storage, base: Bucket, candidate: Bucket, *, shown: AuditedRows = NONE_SHOWN
) -> tuple[str, ...]:
    """Faults of one part of a touched bucket of the candidate. Data files of the base are not read again; rows of new
    files are `shown`."""
    before = {file.name: file for file in base.files}
    with naming(candidate.key, PROMISE):
        files = {candidate.path(file): file.bytes for file in candidate.files}
        return (
            *listing_faults(storage, files, source="manifest"),
            *_vector_faults(storage, base, candidate),
            *order_faults(storage, base, candidate),
            *(
                fault
                for file in candidate.files
                if file.name in before
                for fault in kept_faults(before[file.name], file)
            ),
            *(
                fault
                for file in candidate.files
                if file.name not in before
                for fault in _file_faults(storage, candidate, file, shown)
            ),
        )


def _vector_faults(storage: Storage, base: Bucket, candidate: Bucket) -> Iterator[str]:
    rows = {file.name: file.rows for file in candidate.files}
    for name, vector in vectors_of(storage, candidate, rows.keys()).items():
        if vector and vector.max() >= rows[name]:
            yield f"deletion vector of {name}: position {vector.max()} of {rows[name]} rows"
    for record in candidate.index_records:
        if record["_FILE_NAME"] not in base.index_files:
            path = index_path(candidate, str(record["_FILE_NAME"]))
            size, stated = len(storage.read(path)), record["_FILE_SIZE"]
            if size != stated:
                yield f"{path}: index manifest states {stated} bytes, the file has {size}"


def _file_faults(storage: Storage, bucket: Bucket, file: PaimonDataFile, shown: AuditedRows) -> Iterator[str]:
    """Faults of a new data file: its rows, its sequence numbers, its statistics. Its rows are `shown`. One batch is in
    memory."""
    subject, reader = bucket.path(file), PaimonFileReader(storage, bucket, file, decoder=polars_batches)
    if file.rows == 0:
        yield f"{subject}: no rows, expected no file"
        return
    if file.delete_rows != 0 or file.level != 0:
        yield f"{subject}: deleteRowCount {file.delete_rows}, level {file.level}, expected 0 of a table without keys"
    if file.max_sequence - file.min_sequence + 1 != file.rows:
        yield f"{subject}: sequence numbers {file.min_sequence} to {file.max_sequence} of {file.rows} rows"
    yield from record_faults(file)
    columns = value_columns(bucket)
    seen = {name: ColumnRange() for name in columns}
    start = 0
    for rows in reader.batches(columns, range(len(reader.starts) - 1)):
        shown.add(bucket, file, start, rows)
        seen = {name: with_chunk(held, rows.column(name)) for name, held in seen.items()}
        start += rows.num_rows
    yield from statistic_faults(seen, bucket, file)
