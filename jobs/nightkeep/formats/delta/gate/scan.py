"""Unit -> live positions -> rows, as the gate reads them.

Columns are found and vectors are read with the same code as in a rewrite. Live rows are computed separately: here
by position, where a rewrite filters batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import GroupDecoder
from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.errors import CorruptMetadata, naming
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.locations import located
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.model import View
from nightkeep.model.variant_type import Shredding
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

PROMISE = "rows as their schema promises"


def survivors(storage: Storage, unit: DeltaUnit, view: View = View.RAW) -> Positions:
    """Live positions by file name (DataFile.name): all rows but those in the file's vector.

    Raises CorruptMetadata if a footer and the log differ on the row count, or if a vector does not fit its file. All
    views are the same, because Delta has no key by which one row replaces another.
    """
    with naming(unit.key, PROMISE):
        return {file.name: _survivors(storage, unit, file) for file in unit.files}


def rows(storage: Storage, unit: DeltaUnit, positions: Positions) -> Iterator[pa.RecordBatch]:
    """The rows at `positions`, file by file: every column, and those of row tracking. Texts and bytes may be views."""
    with naming(unit.key, PROMISE):
        for file in unit.files:
            rows_of_file = positions.get(file.name)
            if rows_of_file:
                for piece in _opened(storage, unit, file, polars_batches).taken(None, rows_of_file):
                    yield from piece.combine_chunks().to_batches()


def _opened(
    storage: Storage, unit: DeltaUnit, file: DeltaDataFile, decoder: GroupDecoder | None = None
) -> DeltaFileReader:
    """The file, which shallow clones, that are audited only, have elsewhere."""
    store, held_as = located(storage, file.path)
    return DeltaFileReader(store, unit, replace(file, name=held_as), decoder=decoder, shredding=Shredding.KEPT)


def _survivors(storage: Storage, unit: DeltaUnit, file: DeltaDataFile) -> BitMap64:
    counted = _opened(storage, unit, file).rows
    if file.rows is not None and file.rows != counted:
        raise CorruptMetadata(file.path, f"{file.rows} rows as the log states", f"{counted} in its footer")
    deleted = read_vector(storage, file)
    if deleted and deleted.max() >= counted:
        raise CorruptMetadata(file.path, f"deleted positions below its {counted} rows", str(deleted.max()))
    return BitMap64(range(counted)) - deleted
