"""Bucket that keeps the order of its rows, and its candidate -> faults of that order.

Rows are compared as a sequence: each with its place among the rows that moved, between files that stay. The files of
each side come in the order of their readers. Reads replaced and new files once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.formats.paimon.gate import append_scan, scan
from nightkeep.formats.paimon.gate.unordered import alike
from nightkeep.formats.paimon.metadata.schema import keeps_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.snapshot_order import APPENDED
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Fingerprint, View
from nightkeep.storage import Storage


def order_faults(storage: Storage, base: Bucket, candidate: Bucket) -> Iterator[str]:
    """Faults of files that stay, of new files with the rows of old ones, and of new files with changed rows."""
    if not keeps_order(candidate.schemas.current):
        return
    staying = {file.name for file in base.files} & {file.name for file in candidate.files}
    if _names(base, staying) != _names(candidate, staying):
        yield f"{candidate.key}: files that stay are in another order"
        return
    fresh = [file for file in candidate.files if file.name not in staying]
    if any(file.record.get("_FILE_SOURCE") == APPENDED for file in fresh):
        last = candidate.files[len(candidate.files) - len(fresh) :]
        if list(last) != fresh:
            yield f"{candidate.key}: changed rows are not behind all others"
    elif fresh and _places(storage, base, staying) != _places(storage, candidate, staying):
        yield f"{candidate.key}: rows are in another order than before"


def _names(bucket: Bucket, chosen: Set[str]) -> list[str]:
    return [file.name for file in bucket.files if file.name in chosen]


def _places(storage: Storage, bucket: Bucket, staying: Set[str]) -> Fingerprint:
    """The live rows of the other files, each with the number of staying files before it and of rows since the last."""
    moved = replace(bucket, files=tuple(file for file in bucket.files if file.name not in staying))
    live = append_scan.survivors(storage, moved, View.RAW)
    found, passed, start = Fingerprint(), 0, 0
    for file in bucket.files:
        if file.name in staying:
            passed, start = passed + 1, 0
            continue
        for batch in scan.rows(storage, moved, {file.name: live[file.name]}, decoder=polars_batches):
            columns = alike(batch, bucket.schemas.current).columns
            places = [pa.array(np.full(batch.num_rows, passed)), pa.array(np.arange(start, start + batch.num_rows))]
            names = [str(number) for number in range(len(columns) + len(places))]
            found += fingerprint(pa.RecordBatch.from_arrays([*columns, *places], names))
            start += batch.num_rows
    return found
