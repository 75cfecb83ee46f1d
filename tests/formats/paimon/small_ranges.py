"""Tasks that hold next to nothing in memory: buckets of a few rows are then read in several ranges of keys."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nightkeep.formats.paimon.gate import key_pool, scan
from nightkeep.formats.paimon.rewrite import key_ranges


@contextmanager
def batches_of(rows: int) -> Iterator[None]:
    """A range has as many rows of each sorted run, and a chunk of merged rows too."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (key_ranges, key_pool):
            patch.setattr(module, "HELD", 1 << 60)
        patch.setattr(scan, "MERGED", 1 << 60)
        patch.setattr(key_ranges, "LEAST_BATCH_ROWS", rows)
        patch.setattr(key_pool, "LEAST_BATCH_ROWS", rows)
        patch.setattr(scan, "LEAST_ROWS", rows)
        yield
