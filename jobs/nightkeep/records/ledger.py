"""Documents of finished runs <-> lines of a ledger: what was planned, and what came of it, for the next prediction.

<reports>/~ledger/tables/<table>.jsonl                   the runs of one table
<reports>/~ledger/formats/<format>-<operation>.jsonl     those of all tables of a format

So a prediction reads one small file, however many documents there are. A line that cannot be read is left out, and a
ledger that cannot be written is not: nothing but predictions depends on it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import PlanUnit, RunDocument
from nightkeep.records.file_names import LEDGER, slug
from nightkeep.records.json_files import json_value
from nightkeep.storage.kept import KeptFile, KeptFiles

_MOST_BYTES = 64 << 10
"""A ledger is cut to half of this when it grows beyond: some hundred lines."""
_TRIES = 50
"""How often a line is added anew when others are faster. Jobs of a night finish a table every few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run with what its plan expected and what it came to. Figures are of all its `units` together.

    `reads`, `new_files`, `new_bytes`, `more_files` and `more_bytes` are of model.Estimate. `files` and `bytes`: by what
    the data files of the table grew. `seconds`: of all stages, as far as they were its own; None as long as the version
    waits for its check.
    """

    table: str
    operation: Operation
    run_id: str
    units: int
    reads: int
    new_files: int
    new_bytes: int
    more_files: int
    more_bytes: int
    files: int
    bytes: int
    seconds: float | None = None


def measured(document: RunDocument) -> Measured | None:
    """What a document states of its prediction. None if nothing was measured, if units were left out, or if others
    wrote in between: the files of the published version are theirs too."""
    metrics, units = document.metrics, document.plan.units
    before, after = (metrics.files_before, metrics.bytes_before), (metrics.files_after, metrics.bytes_after)
    if None in (*before, *after) or document.outcome is not Outcome.VERIFIED or not is_alone(document):
        return None
    sums = _sums(units)
    if sums is None:
        return None
    assert metrics.files_before is not None and metrics.bytes_before is not None
    assert metrics.files_after is not None and metrics.bytes_after is not None
    return Measured(
        table=document.table,
        operation=document.operation,
        run_id=document.run_id,
        files=metrics.files_after - metrics.files_before,
        bytes=metrics.bytes_after - metrics.bytes_before,
        seconds=None if document.awaits_check else document.session_seconds,
        **sums,
    )


def keep_measured(document: RunDocument, reports: str | Path) -> None:
    """Add what the document states of its prediction to the ledgers. A document that is stored again is added
    again, if it states something else."""
    found = measured(document)
    if found is None:
        return
    line = json.dumps(encode(found)) + "\n"
    store = report_store(reports)
    with suppress(OSError, ValueError):
        for name in (_of_table(document.table), _of_format(document.format, document.operation)):
            _append(store, name, line.encode("ascii"))


def measured_of_table(reports: str | Path, table: str, operation: Operation) -> tuple[Measured, ...]:
    """The measured runs of this operation on a table, oldest first."""
    found = _read(report_store(reports), _of_table(table))
    return tuple(each for each in found if each.table == table and each.operation is operation)


def measured_of_format(reports: str | Path, format: str, operation: Operation) -> tuple[Measured, ...]:
    """The measured runs of this operation on tables of a format, oldest first."""
    return _read(report_store(reports), _of_format(format, operation))


def last_seconds(reports: str | Path, table: str) -> float:
    """The seconds that the last measured run of each operation on a table took together. Infinite if none was."""
    took = {
        each.operation: each.seconds
        for each in _read(report_store(reports), _of_table(table))
        if each.table == table and each.seconds is not None
    }
    return sum(took.values()) if took else math.inf


def is_alone(document: RunDocument) -> bool:
    """Whether the commits of the run follow each other and its base version."""
    below = document.base_version
    for commit in document.commits:
        if commit.parent_version != below:
            return False
        below = commit.version
    return bool(document.commits)


def _sums(units: Sequence[PlanUnit]) -> dict[str, int] | None:
    """The estimates of all units together; None if a unit has none, or one of an older release."""
    estimates = [unit.estimate for unit in units if unit.estimate is not None]
    more = [each.more_files for each in estimates if each.more_files is not None]
    size = [each.more_bytes for each in estimates if each.more_bytes is not None]
    if not (0 < len(units) == len(more) == len(size)):
        return None
    return {
        "units": len(units),
        "reads": sum(each.read_bytes for each in estimates),
        "new_files": sum(each.files_after for each in estimates),
        "new_bytes": sum(each.written_bytes for each in estimates),
        "more_files": sum(more),
        "more_bytes": sum(size),
    }


def _read(store: KeptFiles, name: str) -> tuple[Measured, ...]:
    """The lines of a ledger, of each run the last one, in the order of their first ones."""
    try:
        lines = store.read(name).data[-_MOST_BYTES:].splitlines()
    except (OSError, ValueError):
        return ()
    found = _decoded(lines, store.address(name))
    return tuple({(each.table, each.operation, each.run_id): each for each in found}.values())


def _decoded(lines: Sequence[bytes], subject: str) -> Iterator[Measured]:
    for line in lines:
        with suppress(ValueError, RecursionError, CorruptMetadata):
            yield decode(Measured, json_value(line), subject)


def _append(store: KeptFiles, name: str, line: bytes) -> None:
    """Add a line to what is there. Another writer may add one at the same time: then it is read again."""
    for _ in range(_TRIES):
        before = _kept(store, name)
        held = b"" if before is None else before.data
        if held.endswith(line):
            return
        if len(held) + len(line) > _MOST_BYTES:
            held = held[-_MOST_BYTES // 2 :].split(b"\n", 1)[-1]
        ended = b"" if not held or held.endswith(b"\n") else b"\n"
        if store.swap(name, held + ended + line, read=before):
            return


def _kept(store: KeptFiles, name: str) -> KeptFile | None:
    try:
        return store.read(name)
    except FileNotFoundError:
        return None


def _of_table(table: str) -> str:
    return f"{LEDGER}/tables/{slug(table)}.jsonl"


def _of_format(format: str, operation: Operation) -> str:
    return f"{LEDGER}/formats/{slug(format)}-{operation}.jsonl"
