"""Rows that level-0 rows replaced -> findings on those that are newer: two writers number their rows independently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import KEY_PREFIX, SEQUENCE, PaimonFileReader
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.lookup import Hits
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

_NAMED_KEYS = 5
"""How many keys a finding shows as text; of the rest it gives the number."""


@dataclass(frozen=True, slots=True)
class NewerRows:
    """Rows of the file `name` that are newer than those that replace them. `named` are the first keys, as text."""

    name: str
    count: int
    named: tuple[str, ...]

    def __add__(self, later: NewerRows) -> NewerRows:
        return NewerRows(self.name, self.count + later.count, (*self.named, *later.named)[:_NAMED_KEYS])

    def __str__(self) -> str:
        return (
            f"overlapping sequence numbers of two writers: {self.count} keys of {self.name} are newer "
            f"than the level-0 rows that replace them, such as {'; '.join(self.named)}"
        )


def newer_below(
    storage: Storage, bucket: Bucket, keys: pa.Table, sequences: ChunkedArray, hit: Hits
) -> NewerRows | None:
    """Rows of one file that are newer than the rows of `keys` that replace them, which have `sequences`."""
    lifted = sequences.to_numpy()[hit.wanted]
    if not len(lifted) or int(lifted.min()) > hit.file.max_sequence:
        return None
    reader = PaimonFileReader(storage, bucket, hit.file)
    held = pa.concat_tables(reader.taken([SEQUENCE], hit.positions)).column(SEQUENCE).to_numpy()
    newer = np.flatnonzero(held >= lifted)
    if not len(newer):
        return None
    return NewerRows(hit.file.name, len(newer), tuple(_spelled(keys.take(hit.wanted[newer[:_NAMED_KEYS]]))))


def _spelled(keys: pa.Table) -> Iterator[str]:
    for row in range(keys.num_rows):
        yield ", ".join(f"{name.removeprefix(KEY_PREFIX)}={keys.column(name)[row]}" for name in keys.column_names)
