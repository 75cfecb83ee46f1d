"""Plan + sizes of the table -> what a run would leave, read, write and take, and how much that is worth. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypedDict

from nightkeep.estimates.corrections import UNCORRECTED, Corrections
from nightkeep.estimates.run_costs import seconds_of
from nightkeep.model import Clustering, FileSizes, Operation
from nightkeep.model.health import Health
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol import OpenPlan
from nightkeep.records import Predicted

OPEN_BYTES: Final = 4 << 20
"""Opening a file costs a reader as much as reading so many bytes (Spark's default of spark.sql.files.openCostInBytes).
"""
FIXED_BYTES: Final = 32 << 20
"""What a run costs beside its rows (metadata, a commit, a check), as bytes read or written."""
_QUERY: Final = 0.01
"""The share of the rows that a query asks for, as the metrics of layouts have it."""


class PredictionJson(TypedDict):
    """A Prediction as JSON holds it."""

    operation: Operation
    files: int
    bytes: int
    reads: int
    writes: int
    seconds: float
    learned_from: str
    skipping: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What `operation` would leave: `files` and `bytes` of all data files of the table; and what it would cost: bytes
    to read, bytes to write, and seconds. `learned_from`: by which runs this was corrected, as text. `skipping`: the
    share of files that a query for 1 % of the rows will not open, by column of the clustering."""

    operation: Operation
    files: int
    bytes: int
    reads: int
    writes: int
    seconds: float
    learned_from: str = UNCORRECTED.learned_from
    skipping: Mapping[str, float] = field(default_factory=dict)

    @property
    def section(self) -> Predicted:
        """As documents have it."""
        return Predicted(self.files, self.bytes, round(self.seconds, 2), self.learned_from, dict(self.skipping))

    def to_json(self) -> PredictionJson:
        return {
            "operation": self.operation,
            "files": self.files,
            "bytes": self.bytes,
            "reads": self.reads,
            "writes": self.writes,
            "seconds": round(self.seconds, 1),
            "learned_from": self.learned_from,
            "skipping": dict(self.skipping),
        }


def predict(
    planned: OpenPlan, sizes: FileSizes, corrections: Corrections = UNCORRECTED, *, clustering: Clustering | None = None
) -> Prediction:
    """The prediction for a plan of a version with files of these `sizes`, whose rows are laid by this `clustering`."""
    estimates = [unit.estimate for unit in planned.units]
    reads = sum(each.read_bytes for each in estimates)
    writes = sum(each.written_bytes for each in estimates)
    # Only what is written can come out otherwise: the other files of the table stay as they are.
    more_files = round((corrections.files - 1) * sum(each.files_after for each in estimates))
    more_bytes = round((corrections.bytes - 1) * writes)
    return Prediction(
        operation=planned.operation,
        files=max(0, len(sizes.bytes) + sum(each.more_files for each in estimates) + more_files),
        bytes=max(0, sum(sizes.bytes) + sum(each.more_bytes for each in estimates) + more_bytes),
        reads=reads,
        writes=max(0, writes + more_bytes),
        seconds=corrections.seconds * seconds_of(planned.operation, units=len(estimates), reads=reads, writes=writes),
        learned_from=corrections.learned_from,
        skipping={} if clustering is None else _skipping(clustering, [each.files_after for each in estimates]),
    )


def _skipping(clustering: Clustering, files: Sequence[int]) -> dict[str, float]:
    """The share of skipped files of each column, from the number of new files of each unit.

    With k columns, n files have about n^(1/k) slices of each. A query opens the slice in which it begins, and as many
    more as it is wide.
    """
    opened = sum(count * min(1.0, count ** (-1 / len(clustering.columns)) + _QUERY) for count in files if count)
    return dict.fromkeys(clustering.columns, round(1 - opened / sum(files), 4)) if any(files) else {}


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
        gain += waiting * (1 + (health.level0_age_ms or 0) / DAY_MS)
    return gain


def shown(metrics: Mapping[str, int | float | None]) -> dict[str, int | float | None]:
    """The metrics as JSON: shares with four digits."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in metrics.items()}
