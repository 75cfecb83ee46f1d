"""Data files -> their live rows, a batch at a time, and a sample of some columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.clustering.live_rows import live_batches, sample_share
from nightkeep.clustering.sizing import is_gone
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.partition_values import require_partition_values
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.hidden_rows import hidden
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile
from nightkeep.storage import Storage


class IcebergLiveRows:
    """Live rows of files of a unit. The gate does not use this code.

    Deleted positions are computed once for the files of one call, with indexes of deleted keys of `index_bytes`.
    """

    def __init__(self, storage: Storage, unit: IcebergUnit, index_bytes: int) -> None:
        self._storage, self._unit, self._index_bytes = storage, unit, index_bytes
        self._rows: dict[str, BitMap64 | None] = {}

    def batches(self, files: Sequence[PlacedFile], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the live rows of `files`, in file order, in tables of one schema. Files without rows are not opened."""
        rows = self._hidden(files)
        for placed in files:
            if not is_gone(placed):
                yield from self._live(placed, columns, rows.get(placed.file.path))

    def count(self, files: Sequence[PlacedFile]) -> int:
        """The number of rows that `batches` yields. Reads deletes, and key columns if there are equality deletes."""
        rows = self._hidden(files)
        some = [placed for placed in files if not is_gone(placed)]
        return sum(placed.rows - len(rows.get(placed.file.path) or ()) for placed in some)

    def sampled(self, files: Sequence[PlacedFile], columns: Sequence[str], share: float) -> pa.Table:
        """A sample of about `share` of each file's rows, deleted ones included, at least one per file."""
        schema = self._unit.schema
        readers = (IcebergFileReader(self._storage, schema, placed.file) for placed in files if not is_gone(placed))
        return sample_share(readers, columns, share)

    def _hidden(self, files: Sequence[PlacedFile]) -> Mapping[str, BitMap64 | None]:
        new = [each.file for each in files if each.deletes and not is_gone(each) and each.file.path not in self._rows]
        if new:
            rows = hidden(self._storage, self._unit, new, index_bytes=self._index_bytes)
            self._rows |= {file.path: rows.get(file.path) for file in new}
        return self._rows

    def _live(self, placed: PlacedFile, columns: Sequence[str], rows: BitMap64 | None) -> Iterator[pa.Table]:
        require_partition_values(self._storage, self._unit.schema, [placed.file])
        reader = IcebergFileReader(self._storage, self._unit.schema, placed.file)
        if reader.rows != placed.rows:
            raise CorruptMetadata(placed.file.path, f"{placed.rows} rows, as its manifest counts", str(reader.rows))
        yield from live_batches(reader, placed, columns, rows)
