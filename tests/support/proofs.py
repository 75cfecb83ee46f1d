"""Faults of the files of a unit, with or without the rows that a gate shows while it looks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from nightkeep.protocol import Gate


def unshown(batch: pa.RecordBatch) -> None:
    """Rows are not looked at."""


NO_ROWS: Final[dict[str, Any]] = {"live": BitMap64(), "show": unshown}
"""For `file_faults`: no rows are shown."""


def in_batches(monkeypatch: pytest.MonkeyPatch, reader: type[Any], rows: int) -> None:
    """Files are read so many rows at a time."""

    def pieces(self: Any, names: Sequence[str], groups: Sequence[int]) -> Any:
        return self._pieces(self._columns(names), groups=groups, batch_rows=rows)

    monkeypatch.setattr(reader, "pieces", pieces)


def unit_faults(gate: Gate[Any, Any], base: Any, candidate: Any) -> tuple[str, ...]:
    return gate.unit_faults(base, candidate, {}, unshown)
