"""Every kind of sabotage -> the tables of docs/proof.md: who catches it, and which expectation alone fails.

`make sabotage` prints them.

`python -m tests.sabotage.table [GROUP]` does the groups whose names start so.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

from pyspark.sql import SparkSession
from tests.drivers.toolchain import FEW_ROWS
from tests.sabotage.detectors import BROKEN, CAUGHT, COLUMNS, NOT_ASKED, Detectors
from tests.sabotage.kinds import Kind, every_kind
from tests.sabotage.lone_kinds import BY_FORMAT
from tests.sabotage.lone_removals import AFTER_REMOVALS

from nightkeep.checking.expectations import EXPECTATIONS, KEPT

Found = tuple[str, ...]
NOT_APPLICABLE = "not applicable"


def main(starts: Sequence[str]) -> None:
    wanted = [kind for kind in every_kind() if not starts or kind.group.startswith(tuple(starts))]
    print("\n".join(lines(results(wanted))))
    print("\n".join(["", *lone_lines()]))


def results(kinds: Sequence[Kind]) -> dict[Kind, Found]:
    builder = SparkSession.builder.master("local[1]").appName("sabotage").config("spark.ui.enabled", "false")
    for name, value in FEW_ROWS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        with tempfile.TemporaryDirectory(prefix="nightkeep-sabotage-") as folder, ExitStack() as stack:
            detectors = Detectors.started(spark, Path(folder), stack)
            return {kind: _result(detectors, kind, Path(folder) / str(n)) for n, kind in enumerate(kinds)}
    finally:
        spark.stop()


def _result(detectors: Detectors, kind: Kind, folder: Path) -> Found:
    found = detectors.of(kind, folder)
    print(f"{kind.group}: {kind.name}: {found}", file=sys.stderr, flush=True)
    return found


def lines(found: Mapping[Kind, Found]) -> Iterator[str]:
    yield f"| sabotage | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---|' * len(COLUMNS)}"
    for group, rows in groupby(found.items(), key=lambda row: row[0].group):
        yield f"| **{group}** |{' |' * len(COLUMNS)}"
        yield from (f"| {_cell(kind.name)} | {' | '.join(marks)} |" for kind, marks in rows)
    yield f"| **caught, of {len(found)}** | {' | '.join(_shares(list(found.values())))} |"


def lone_lines() -> Iterator[str]:
    """For each expectation, the sabotage in which it alone fails. A test does them all."""
    yield "| expectation | Paimon | Delta | Iceberg |"
    yield "|---|---|---|---|"
    for name in (str(each.description) for each in EXPECTATIONS):
        cells = (lone[name].said if name in lone else NOT_APPLICABLE for lone in BY_FORMAT.values())
        yield f"| {name} | {' | '.join(map(_cell, cells))} |"
    yield "| **after a removal of files** | | | |"
    for name in (str(each.description) for each in KEPT):
        yield f"| {name} | | {_cell(AFTER_REMOVALS[name][0])} | |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _shares(found: Sequence[Found]) -> Iterator[str]:
    """Of those that there was something to judge of."""
    for marks in zip(*found, strict=True):
        asked = [mark for mark in marks if mark != NOT_ASKED]
        caught = sum(mark in (CAUGHT, BROKEN) for mark in asked)
        yield f"{caught} of {len(asked)} ({caught / max(1, len(asked)):.0%})"


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main(sys.argv[1:])
