"""Unit -> surviving positions -> logical rows: how the gate reads.

Data files and vectors are read by the code that a rewrite reads them with; which rows are live is decided here, by
position, where a rewrite filters.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, naming
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes.vectors import read_vector
from nightkeep.formats.delta.metadata.snapshot import DeltaDataFile, DeltaUnit
from nightkeep.model import View
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

PROMISE = "rows as their schema promises"


def survivors(storage: Storage, unit: DeltaUnit, view: View = View.RAW) -> Positions:
    """Positions that every reader shows, by file name (DataFile.name): all rows but those of the file's vector.

    Raises CorruptMetadata where a footer counts other rows than the log, or a vector does not fit its file.
    Both views show the same, as no key lets one row replace another.
    """
    with naming(unit.key, PROMISE):
        return {file.name: _survivors(storage, unit, file) for file in unit.files}


def rows(storage: Storage, unit: DeltaUnit, positions: Positions) -> Iterator[pa.RecordBatch]:
    """The rows at `positions`: every column and what row tracking keeps, file by file, of one Arrow schema."""
    with naming(unit.key, PROMISE):
        for file in unit.files:
            wanted = positions.get(file.name)
            if wanted:
                for piece in DeltaFileReader(storage, unit, file).taken(None, wanted):
                    yield from piece.combine_chunks().to_batches()


def _survivors(storage: Storage, unit: DeltaUnit, file: DeltaDataFile) -> BitMap64:
    counted = DeltaFileReader(storage, unit, file).rows
    if file.rows is not None and file.rows != counted:
        raise CorruptMetadata(file.path, f"{file.rows} rows as the log says", f"{counted} in its footer")
    deleted = read_vector(storage, file)
    if deleted and deleted.max() >= counted:
        raise CorruptMetadata(file.path, f"deleted positions below its {counted} rows", str(deleted.max()))
    return BitMap64(range(counted)) - deleted
