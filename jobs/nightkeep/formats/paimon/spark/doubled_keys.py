"""Files whose rows are sorted by key -> how many of their live rows repeat a key. Neighbours are compared in Arrow.

Spark merges the rows of a sorted run with rows of other files only, as no key is twice in a run. A file that repeats a
key all the same shows both rows before and after a commit that keeps it, so that no sum of hashes differs. Rows of one
key are neighbours in a sorted file: one task reads the key columns of a file, and no row is shuffled.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.errors import CorruptMetadata, reason_of
from nightkeep.formats.paimon.deletes.vectors import decode_vector
from nightkeep.formats.paimon.metadata.file_formats import format_of
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange
from nightkeep.formats.paimon.spark.data_files import KEY_PREFIX, PaimonStoredFile
from nightkeep.formats.paimon.spark.deletion_vectors import ranges_by_file
from nightkeep.spark.releases import arrow_of, frame_of
from nightkeep.storage import Storage

READABLE: Final = frozenset({"parquet", "orc"})
"""File formats whose columns are read one by one. Avro files are decoded whole, and are few: their keys are counted."""
_BATCH_ROWS: Final = 1 << 16
"""Keys of so many rows are held at a time."""


@dataclass(frozen=True, slots=True)
class _KeysOfFile:
    """A file to read. `names`: for each key column the names that it may have. `vector`: its deleted rows, with the
    name of the vector file."""

    storage: Storage
    unit: int
    path: str
    names: Sequence[Sequence[str]]
    vector: tuple[str, VectorRange] | None


def doubled_keys(spark: SparkSession, storage: Storage, files: Sequence[PaimonStoredFile]) -> Mapping[int, int]:
    """By index of the unit, how many live rows of `files` have the key of the live row before them in their file.

    Every file is of one of READABLE. Raises CorruptMetadata for a file that cannot be read.
    """
    vectors = ranges_by_file(files)
    chosen = [_KeysOfFile(storage, f.unit, f.path, _names(f), vectors.get(f.number)) for f in files]
    table = pa.table({"pickled": pa.array([pickle.dumps(each) for each in chosen], pa.binary())})
    rows = arrow_of(frame_of(spark, table).mapInArrow(_counted, "unit int, doubled long"))
    counts: Counter[int] = Counter()
    for unit, doubled in zip(*(rows.column(name).to_numpy() for name in ("unit", "doubled")), strict=True):
        counts[int(unit)] += int(doubled)
    return counts


def repeats(keys: pa.Table) -> int:
    """How many rows have the values of the row before them in all columns. Null equals null, one NaN another, and -0.0
    differs from 0.0. Cost: one comparison per value."""
    if keys.num_rows < 2:
        return 0
    same = (_same(column.slice(1), column.slice(0, keys.num_rows - 1)) for column in map(_exact, keys.columns))
    return int(pc.sum(reduce(pc.and_, same)).as_py() or 0)


def _same(left: Any, right: Any) -> Any:
    """True, false, or null where one of both is null."""
    return pc.or_kleene(pc.and_(pc.is_null(left), pc.is_null(right)), pc.equal(left, right))


def _exact(column: Any) -> Any:
    """Numbers with a point as their bits, all NaN alike."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    bits = pa.int64() if column.type.bit_width == 64 else pa.int32()
    return pc.if_else(pc.is_nan(column), nan, column).combine_chunks().view(bits)


def _names(file: PaimonStoredFile) -> list[tuple[str, ...]]:
    """Of each key column the names that it may have in the file: a thin file stores keys as values only."""
    schemas = file.bucket.schemas
    written = {field.id: field.name for field in schemas.by_id[file.file.schema_id].fields}
    held = [written[field.id] for field in schemas.current.select(schemas.current.trimmed_keys)]
    return [(KEY_PREFIX + name, name) for name in held]


def _counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        files: list[_KeysOfFile] = [pickle.loads(each.as_py()) for each in batch.column("pickled")]
        counts = [_doubled(file) for file in files]
        units = pa.array([file.unit for file in files], pa.int32())
        yield pa.record_batch([units, pa.array(counts, pa.int64())], ["unit", "doubled"])


def _doubled(file: _KeysOfFile) -> int:
    count, last = 0, None
    for keys in _live(file):
        joined = keys if last is None else pa.concat_tables([last, keys])
        count += repeats(joined)
        last = joined.slice(max(0, joined.num_rows - 1))
    return count


def _live(file: _KeysOfFile) -> Iterator[pa.Table]:
    """The keys of live rows, in the order of the file."""
    deleted = np.empty(0, np.int64)
    if file.vector is not None:
        name, vector = file.vector
        deleted = np.asarray(decode_vector(file.storage.read(name), vector, subject=name).to_array(), np.int64)
    start = 0
    for batch in _batches(file):
        stop = start + batch.num_rows
        first, end = np.searchsorted(deleted, [start, stop])
        keys = pa.Table.from_batches([batch])
        if first < end:
            is_live = np.ones(batch.num_rows, np.bool_)
            is_live[deleted[first:end] - start] = False
            keys = keys.filter(pa.array(is_live))
        yield keys
        start = stop


def _batches(file: _KeysOfFile) -> Iterator[pa.RecordBatch]:
    try:
        if format_of(file.path) == "orc":
            stored = OrcRows(file.storage.open(file.path), subject=file.path)
            names = _stored_names(file, stored.names)
            yield from stored.batches(names, range(len(stored.starts) - 1), rows=_BATCH_ROWS)
        else:
            with file.storage.open(file.path) as source:
                opened = pq.ParquetFile(source)
                names = _stored_names(file, opened.schema_arrow.names)
                yield from opened.iter_batches(_BATCH_ROWS, columns=names, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as failure:
        raise CorruptMetadata(file.path, "keys that can be read", reason_of(failure)) from failure


def _stored_names(file: _KeysOfFile, stored: Sequence[str]) -> list[str]:
    found = [next((name for name in names if name in stored), None) for names in file.names]
    missing = [names[-1] for names, name in zip(file.names, found, strict=True) if name is None]
    if missing:
        raise CorruptMetadata(file.path, f"columns {', '.join(missing)}", f"columns {', '.join(stored)}")
    return [name for name in found if name is not None]
