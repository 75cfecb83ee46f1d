"""Plan + sizes of the table -> what a run would leave, read, write and take, and how much that is worth. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from nightkeep.model import FileSizes, Operation
from nightkeep.model.health import Health
from nightkeep.protocol import OpenPlan

OPEN_BYTES: Final = 4 << 20
"""Opening a file costs a reader as much as reading so many bytes (Spark's default of spark.sql.files.openCostInBytes).
"""
FIXED_BYTES: Final = 32 << 20
"""What a run costs beside its rows (metadata, a commit, a check), as bytes read or written."""
BYTES_PER_SECOND: Final = 32 << 20
"""Bytes read and written in a second, with the gate, before any run of the table has been measured."""
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What `operation` would leave: `files` and `bytes` of all data files of the table; and what it would cost: bytes
    to read, bytes to write, and seconds."""

    operation: Operation
    files: int
    bytes: int
    reads: int
    writes: int
    seconds: float

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "operation": self.operation.value, "seconds": round(self.seconds, 1)}


def predict(planned: OpenPlan, sizes: FileSizes) -> Prediction:
    """The prediction for a plan of a version with files of these `sizes`."""
    units, before = planned.units, (len(sizes.bytes), sum(sizes.bytes))
    reads = sum(unit.estimate.read_bytes for unit in units)
    writes = sum(unit.estimate.written_bytes for unit in units)
    files = sum(unit.estimate.files_after - len(unit.input_files) for unit in units)
    size = sum(unit.estimate.written_bytes - unit.input_bytes for unit in units)
    # Deletes that take another form leave every data file as it is.
    stays = planned.operation is Operation.PERSIST_DELETES
    return Prediction(
        operation=planned.operation,
        files=before[0] if stays else max(0, before[0] + files),
        bytes=before[1] if stays else max(0, before[1] + size),
        reads=reads,
        writes=writes,
        seconds=(reads + writes + FIXED_BYTES) / BYTES_PER_SECOND,
    )


def score(health: Health, predicted: Prediction, planned: OpenPlan) -> float:
    """What the run would save readers of the whole table, in bytes, for each byte that it costs. 0 or more.

    A file less saves OPEN_BYTES, and so does a delete file less for each data file that it is read with; deleted rows
    that go save their share of bytes. Files whose rows readers do not see yet count once, and once more for each day.
    """
    return round(_gain(health, predicted, planned) / (predicted.reads + predicted.writes + FIXED_BYTES), 4)


def _gain(health: Health, predicted: Prediction, planned: OpenPlan) -> float:
    gain = float(max(0, health.files - predicted.files) * OPEN_BYTES + max(0, health.bytes - predicted.bytes))
    if predicted.operation is Operation.PERSIST_DELETES:
        gain += sum(len(unit.input_files) for unit in planned.units) * (health.equality_files or 0) * OPEN_BYTES
    if predicted.operation is Operation.UPGRADE:
        waiting = (health.level0_bytes or 0) + (health.level0_files or 0) * OPEN_BYTES
        gain += waiting * (1 + (health.level0_age_ms or 0) / _DAY_MS)
    return gain


def shown(metrics: Mapping[str, int | float | None]) -> dict[str, int | float | None]:
    """The metrics as JSON: shares with four digits."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in metrics.items()}
