"""Rows -> what proofs compare of them. Variants that engines may read differently are refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from nightkeep.errors import reason_of, unfit_values
from nightkeep.kernels import fingerprint as kernel
from nightkeep.kernels.row_difference import Hashes
from nightkeep.model import Fingerprint


def fingerprint(rows: pa.RecordBatch) -> Fingerprint:
    """As the kernel of this name. Raises RefusedRows for a value without a hash, such as a damaged variant."""
    with _named():
        return kernel.fingerprint(rows)


def row_hashes(rows: pa.RecordBatch) -> Hashes:
    """As the kernel of this name. Raises as `fingerprint`."""
    with _named():
        return kernel.row_hashes(rows)


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except ValueError as failure:
        raise unfit_values("rows to compare", "values that all engines read alike", reason_of(failure)) from failure
