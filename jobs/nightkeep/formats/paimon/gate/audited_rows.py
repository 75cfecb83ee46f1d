"""Rows of new files, as their audit decodes them -> those that readers see, shown to the proof.

So a new file is decoded once, for its audit and for the fingerprint of its rows.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import only
from nightkeep.formats.paimon.data.columns import value_columns
from nightkeep.formats.paimon.gate.unordered import alike
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.protocol import Positions, Show


@dataclass(frozen=True, slots=True)
class AuditedRows:
    """Shows the rows at `positions` of files of a bucket: every column of its current schema, elements without an order
    in ours. Texts and bytes may be views. By default none are shown."""

    positions: Positions = field(default_factory=dict[str, BitMap64])
    show: Show = lambda batch: None

    def of_kept(self, kept: Container[str]) -> Positions:
        """The positions in files whose names are in `kept`, which no audit decodes."""
        return {name: rows for name, rows in self.positions.items() if name in kept}

    def add(self, bucket: Bucket, file: PaimonDataFile, start: int, rows: pa.Table) -> None:
        """Show what readers see of `rows`, which begin at position `start` of `file` and have every value column."""
        live = self.positions.get(file.name)
        if live is None:
            return
        for piece in only([(start, rows.select(value_columns(bucket)))], live):
            for batch in piece.to_batches():
                self.show(alike(batch, bucket.schemas.current))


NONE_SHOWN = AuditedRows()
