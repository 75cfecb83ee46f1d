"""What earlier runs were predicted and measured -> by how much the next prediction is corrected."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.estimates.run_costs import seconds_of
from nightkeep.model import Operation
from nightkeep.records import Measured, measured_of_format, measured_of_table

LEAST: Final = 0.2
MOST: Final = 5.0
_RUNS: Final = 10
"""How many runs of a table are used. Older runs saw another state of the table."""
_RUNS_OF_OTHERS: Final = 100
_FEWEST_OF_OTHERS: Final = 5
"""A few other tables may have been the first of a session, whose Java was not compiled yet, and their rows may be
compressed in another way."""


@dataclass(frozen=True, slots=True)
class Corrections:
    """What new files, new bytes and seconds have been, as multiples of what was expected. `learned_from`: by which
    runs, as text."""

    files: float = 1.0
    bytes: float = 1.0
    seconds: float = 1.0
    learned_from: str = "no run yet"


UNCORRECTED: Final = Corrections()


def correction(own: Sequence[Measured], others: Callable[[], Sequence[Measured]]) -> Corrections:
    """The median multiple of each figure among the last of a table's `own` runs. A figure that none of them has
    measured, from those of `others`, which are asked for only then; of a table without runs only from several."""
    last = own[-_RUNS:]
    if last and any(each.seconds is not None for each in last):
        return _medians(last, f"{_counted(last)} of this table")
    every = others()[-_RUNS_OF_OTHERS:]
    if last:
        found = _medians(last, f"{_counted(last)} of this table")
        return Corrections(found.files, found.bytes, _median(every, _of_seconds), found.learned_from)
    if len(every) < _FEWEST_OF_OTHERS:
        return UNCORRECTED
    return _medians(every, f"{_counted(every)} of tables of its format")


def read_corrections(reports: str, table: str, *, format: str, operation: Operation) -> Corrections:
    """The corrections for one operation on one table: two small files are read at most."""
    if not operation.rewrites:
        return UNCORRECTED
    own = measured_of_table(reports, table, operation)
    return correction(own, lambda: measured_of_format(reports, format, operation))


def _medians(runs: Sequence[Measured], learned_from: str) -> Corrections:
    return Corrections(_median(runs, _of_files), _median(runs, _of_bytes), _median(runs, _of_seconds), learned_from)


def _median(runs: Sequence[Measured], multiple: Callable[[Measured], float | None]) -> float:
    found = [min(MOST, max(LEAST, value)) for each in runs if (value := multiple(each)) is not None]
    return statistics.median(found) if found else 1.0


def _of_files(run: Measured) -> float | None:
    return _multiple(run.files - run.more_files, run.new_files)


def _of_bytes(run: Measured) -> float | None:
    return _multiple(run.bytes - run.more_bytes, run.new_bytes)


def _of_seconds(run: Measured) -> float | None:
    if run.seconds is None:
        return None
    units, reads, writes = (max(0, figure) for figure in (run.units, run.reads, run.new_bytes))
    return run.seconds / seconds_of(run.operation, units=units, reads=reads, writes=writes)


def _multiple(beyond: int, expected: int) -> float | None:
    """The ratio of what was written to what was expected. `beyond`: the difference."""
    return 1 + beyond / expected if expected > 0 else None


def _counted(runs: Sequence[Measured]) -> str:
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}"
