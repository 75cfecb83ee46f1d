"""A bucket and a clock -> the keys of which a row has expired, by hashes.

Java's compactions leave out expired rows of each file before they merge (C/io/RecordLevelExpire.java): an older row of
the key that has not expired is seen again, and a merged row is made of fewer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.gate.expired_rows import expired
from nightkeep.formats.paimon.metadata.record_expiry import record_age
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.kernels.fingerprint import row_hashes
from nightkeep.storage import Storage


def without_aged(storage: Storage, bucket: Bucket, clock_ms: int) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Leaves out of rows those of keys that have an expired row in any file of the bucket. Reads keys and times."""
    keys = list(bucket.schemas.current.primary_keys)
    aged = [_expired_keys(storage, bucket, file, clock_ms) for file in bucket.files]
    gone = np.unique(np.concatenate([np.empty(0, np.uint64), *aged]))

    def left(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pa.array(~np.isin(row_hashes(rows.select(keys))[0], gone)))

    return left


def _expired_keys(storage: Storage, bucket: Bucket, file: PaimonDataFile, clock_ms: int) -> npt.NDArray[np.uint64]:
    schema = bucket.schemas.current
    age = record_age(schema)
    found = [np.empty(0, np.uint64)]
    if age is None:
        return found[0]
    reader = PaimonFileReader(storage, bucket, file)
    names = list(dict.fromkeys([*schema.primary_keys, age.field.name]))
    for piece in reader.batches(names, range(len(reader.starts) - 1)):
        for batch in piece.to_batches():
            rows = without_views(batch).filter(expired(bucket, batch, clock_ms))
            found.append(row_hashes(rows.select(list(schema.primary_keys)))[0])
    return np.concatenate(found)
