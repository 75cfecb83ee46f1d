"""Rows that level-0 rows replaced -> findings on those that are newer: two writers number their rows independently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import SEQUENCE, PaimonFileReader
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.lookup import Hits
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class NewerRows:
    """The number of rows of the file `name` that are newer than the rows that replace them."""

    name: str
    count: int

    def __add__(self, later: NewerRows) -> NewerRows:
        return NewerRows(self.name, self.count + later.count)

    def __str__(self) -> str:
        return (
            f"overlapping sequence numbers of two writers: {self.count} keys of {self.name} are newer "
            "than the level-0 rows that replace them"
        )


def newer_below(storage: Storage, bucket: Bucket, sequences: ChunkedArray, hit: Hits) -> NewerRows | None:
    """Rows of one file that are newer than the rows that replace them. `sequences` are those of the latter."""
    lifted = sequences.to_numpy()[hit.wanted]
    if not len(lifted) or int(lifted.min()) > hit.file.max_sequence:
        return None
    reader = PaimonFileReader(storage, bucket, hit.file)
    held = pa.concat_tables(reader.taken([SEQUENCE], hit.positions)).column(SEQUENCE).to_numpy()
    newer = int(np.count_nonzero(held >= lifted))
    return NewerRows(hit.file.name, newer) if newer else None
