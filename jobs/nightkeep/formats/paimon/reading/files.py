"""A bucket's files -> their bounds, their deleted rows and their rows, as readers see them.

Merges are the gate's own: what the gate proves of a table is what people read. Raw rows are read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.parquet_statistics import group_spans
from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate import scan
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.reading.views import merging_schema
from nightkeep.kernels.spans import ColumnSpans, null_spans
from nightkeep.model import View
from nightkeep.protocol.reading import Path, RowFile
from nightkeep.storage import Storage


def open_file(storage: Storage, bucket: Bucket, name: str) -> RowFile:
    (file,) = (file for file in bucket.files if file.name == name)
    converting = replace(bucket, schemas=replace(bucket.schemas, converts=True))
    return _PaimonRows(PaimonFileReader(storage, converting, file))


def hidden(storage: Storage, bucket: Bucket) -> Mapping[str, BitMap64]:
    """Deleted positions by file name, from the bucket's vectors."""
    return read_vectors(storage, bucket)


def merged(storage: Storage, bucket: Bucket, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows that a merge of all files shows, of these columns: first whole stored rows, then merged ones."""
    schemas = replace(bucket.schemas, current=merging_schema(bucket.schemas.current, columns), converts=True)
    narrow = replace(bucket, schemas=schemas)
    kept = scan.survivors(storage, narrow, View.MERGED)
    for rows in (scan.rows(storage, narrow, kept), scan.merged(storage, narrow, View.MERGED)):
        for batch in rows:
            yield batch.select(list(columns))


class _PaimonRows:
    """RowFile of a data file."""

    def __init__(self, reader: PaimonFileReader) -> None:
        self._reader = reader
        self.subject = reader.subject
        self.groups: Sequence[int] = np.diff(reader.starts).tolist()

    def spans(self, paths: Collection[Path]) -> Mapping[Path, ColumnSpans]:
        parquet = self._reader.parquet
        if parquet is None:
            return {}
        footer, held = parquet.metadata, parquet.schema_arrow
        leaves = {footer.schema.column(number).path: number for number in range(footer.num_columns)}
        spans: dict[Path, ColumnSpans] = {}
        for path in (path for path in paths if len(path) == 1):
            column = self._reader.column(path[0])
            if column.conversion is not None:
                # The file's ranges are of the older type.
                continue
            if column.stored is None:
                spans[path] = null_spans(column.logical, self.groups)
            elif column.stored in leaves:
                own = held.field(column.stored).type
                spans[path] = group_spans(footer, leaves[column.stored], own, column.logical)
        return spans

    def pieces(self, columns: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        for run in _runs(groups):
            start = int(self._reader.starts[run[0]])
            for piece in self._reader.batches(columns, run):
                yield start, piece
                start += piece.num_rows


def _runs(groups: Sequence[int]) -> Iterator[Sequence[int]]:
    """Neighbouring row groups together: reading ten groups of 150,000 rows one by one takes 6 % longer."""
    run: list[int] = []
    for group in groups:
        if run and group != run[-1] + 1:
            yield run
            run = []
        run.append(group)
    if run:
        yield run
