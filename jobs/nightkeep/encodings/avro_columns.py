"""An Avro file of rows -> Arrow batches of chosen columns, nested ones too, with field ids. Decoded by Polars.

The file is in memory as it is stored, and a part of it decoded: blocks that follow each other, about as many bytes as a
row group of other formats has. Positions are row ordinals in the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import StoredContainer, open_container, well_formed
from nightkeep.encodings.avro_schemas import root_of
from nightkeep.encodings.avro_types import column_types
from nightkeep.encodings.stored_types import declared
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.limits import FILE

_BRANCH: Final = "branch"
"""The name of the field that holds the branch of a row. Columns have numbers as names."""
PART_BYTES: Final = 4 << 20
"""Stored bytes of a part, which take some ten times as many once they are decoded."""
PART_ROWS: Final = 1 << 20
"""Rows of a part, beyond its first block: rows that are alike take few bytes."""


class AvroColumns:
    """One file. Raises CorruptMetadata naming `subject` if it is no Avro file, RefusedTable for types not handled.

    `fields` are its columns in order. `starts` has the first row of each part, then the number of rows. `branch` is the
    record's in a schema that is a union of null and a record; None in other files.
    """

    def __init__(self, source: pa.NativeFile, *, subject: str) -> None:
        self._subject = subject
        FILE.require(source.size(), subject)
        with well_formed(subject):
            self._container: StoredContainer = open_container(source.read(), CODECS, subject=subject)
            root = root_of(self._container.schema)
            types = column_types(root.record, subject=subject)
            self._parts, counts = _parts(self._container)
        self.fields, self.branch = list(types.fields), root.branch
        # A union's value begins with the number of its branch. Polars reads records, so that is their first field.
        leading = [] if root.branch is None else [{"name": _BRANCH, "type": "int"}]
        self._schema = {**types.plain, "fields": [*leading, *types.plain["fields"]]}
        self._every = range(len(self.fields))
        self.starts: npt.NDArray[np.int64] = np.cumsum([0, *counts], dtype=np.int64)

    def batches(self, columns: Sequence[int], part: int, *, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part, at most `rows` at a time, of the columns at these ascending indexes."""
        batch = self._part(columns, part)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def _part(self, columns: Sequence[int], part: int) -> pa.RecordBatch:
        with well_formed(self._subject):
            block, count = self._container.as_one_block(self._schema, self._parts[part])
        try:
            frame = self._frame(block, columns)
            if len(frame) != count:
                raise CorruptMetadata(self._subject, f"{count} rows, as its blocks state", str(len(frame)))
            table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            fields = [self.fields[place] for place in columns]
            arrays = [
                pa.nulls(count)
                if pa.types.is_null(field.type)
                else declared(table.column(str(place)).combine_chunks(), field.type)
                for place, field in zip(columns, fields, strict=True)
            ]
            # Of no columns, a batch has its rows all the same.
            rows = pa.RecordBatch.from_arrays([pa.nulls(count)], ["rows"]).select([])
        except pl.exceptions.PanicException as failure:
            feature = f"an Avro file beyond what Polars reads: {reason_of(failure)}"
            raise RefusedTable(self._subject, feature, "use Parquet files") from failure
        except (pl.exceptions.PolarsError, pa.ArrowException, OSError, ValueError) as failure:
            raise CorruptMetadata(self._subject, "blocks of an Avro file", reason_of(failure)) from failure
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)) if fields else rows

    def _frame(self, block: bytes, columns: Sequence[int]) -> pl.DataFrame:
        branches = [] if self.branch is None else [_BRANCH]
        # Without a column Polars would not count rows.
        names = [*branches, *self._read(columns)] or self._read(self._every)[:1]
        frame = pl.read_avro(io.BytesIO(block), columns=names)
        if branches and not (frame[_BRANCH] == self.branch).all():
            raise CorruptMetadata(self._subject, "rows in each branch of its union", "null for a row")
        return frame

    def _read(self, columns: Sequence[int]) -> list[str]:
        """The names by which Polars gets these columns; those of nulls alone are not stored."""
        return [str(place) for place in columns if not pa.types.is_null(self.fields[place].type)]


def _parts(container: StoredContainer) -> tuple[list[range], list[int]]:
    """The bytes of each part, and its number of rows."""
    parts: list[range] = []
    counts: list[int] = []
    for count, block in container.blocks():
        if parts and block.stop - parts[-1].start <= PART_BYTES and counts[-1] + count <= PART_ROWS:
            parts[-1], counts[-1] = range(parts[-1].start, block.stop), counts[-1] + count
        else:
            parts.append(block)
            counts.append(count)
    return parts, counts
