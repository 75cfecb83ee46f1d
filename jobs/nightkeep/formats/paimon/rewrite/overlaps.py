"""Rows that level-0 rows replaced -> findings on those that are newer: two writers number their rows independently."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.data.columns import KEY_PREFIX, SEQUENCE, PaimonFileReader
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.lookup import Hits
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

_NAMED_KEYS = 5
"""How many keys a finding shows as text; of the rest it gives the number."""


def newer_below(storage: Storage, bucket: Bucket, keys: pa.Table, sequences: ChunkedArray, hit: Hits) -> Iterator[str]:
    """Rows of one file that are newer than the rows of `keys` that replace them, which have `sequences`."""
    lifted = sequences.to_numpy()[hit.wanted]
    if not len(lifted) or int(lifted.min()) > hit.file.max_sequence:
        return
    reader = PaimonFileReader(storage, bucket, hit.file)
    held = reader.read([SEQUENCE]).column(SEQUENCE).to_numpy()[hit.positions]
    newer = np.flatnonzero(held >= lifted)
    if len(newer):
        named = keys.take(hit.wanted[newer[:_NAMED_KEYS]])
        yield (
            f"overlapping sequence numbers of two writers: {len(newer)} keys of {hit.file.name} are newer "
            f"than the level-0 rows that replace them, such as {_spelled(named)}"
        )


def _spelled(keys: pa.Table) -> str:
    return "; ".join(
        ", ".join(f"{name.removeprefix(KEY_PREFIX)}={keys.column(name)[row]}" for name in keys.column_names)
        for row in range(keys.num_rows)
    )
