"""Documents of finished runs <-> lines of a ledger: what was planned, and what came of it, for the next prediction.

<reports>/~ledger/tables/<table>.jsonl                   the runs of one table
<reports>/~ledger/formats/<format>-<operation>.jsonl     those of all tables of a format

So a prediction reads one small file, however many documents there are. A line that cannot be read is left out, and a
ledger that cannot be written is not: nothing but predictions depends on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.reports.codec import decode, encode
from nightkeep.reports.document import PlanUnit, RunDocument
from nightkeep.reports.file_names import slug
from nightkeep.reports.json_files import json_value

# No slug is like this: a `~` in a slug is followed by hexadecimal digits.
LEDGER = "~ledger"
_MOST_BYTES = 64 << 10
"""A ledger is cut to half of this when it grows beyond: some hundred lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run with what its plan expected and what it came to. Figures are of all its `units` together.

    `reads`, `new_files`, `new_bytes`, `more_files` and `more_bytes` are of model.Estimate. `files` and `bytes`: by what
    the data files of the table grew. `seconds`: of all stages; None as long as the version waits for its check.
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
    """What a document says of its prediction. None if nothing was measured, if units were left out, or if others wrote
    in between: the files of the published version are theirs too."""
    metrics, units = document.metrics, document.plan.units
    before, after = (metrics.files_before, metrics.bytes_before), (metrics.files_after, metrics.bytes_after)
    if None in (*before, *after) or document.outcome is not Outcome.VERIFIED or not _alone(document):
        return None
    sums = _sums(units)
    if sums is None:
        return None
    assert metrics.files_before is not None and metrics.bytes_before is not None
    assert metrics.files_after is not None and metrics.bytes_after is not None
    return Measured(
        table=document.table, operation=document.operation, run_id=document.run_id,
        files=metrics.files_after - metrics.files_before, bytes=metrics.bytes_after - metrics.bytes_before,
        seconds=None if document.awaits_check else document.total_seconds, **sums,
    )  # fmt: skip


def keep_measured(document: RunDocument, reports_dir: str | Path) -> None:
    """Add what the document says of its prediction to the ledgers. A document that is stored again is added again."""
    found = measured(document)
    if found is None:
        return
    line = json.dumps(encode(found)) + "\n"
    with suppress(OSError):
        for path in (_of_table(reports_dir, document.table), _of_format(reports_dir, document)):
            _append(path, line)


def measured_of_table(reports_dir: str | Path, table: str, operation: Operation) -> tuple[Measured, ...]:
    """The measured runs of this operation on a table, oldest first."""
    found = _read(_of_table(reports_dir, table))
    return tuple(each for each in found if each.table == table and each.operation is operation)


def measured_of_format(reports_dir: str | Path, format: str, operation: Operation) -> tuple[Measured, ...]:
    """The measured runs of this operation on tables of a format, oldest first."""
    return _read(_format_path(reports_dir, format, operation))


def _alone(document: RunDocument) -> bool:
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


def _read(path: Path) -> tuple[Measured, ...]:
    """The lines of a ledger, of each run the last one, in the order of their first ones."""
    try:
        with path.open("rb") as source:
            source.seek(max(0, os.fstat(source.fileno()).st_size - _MOST_BYTES))
            lines = source.read(_MOST_BYTES).splitlines()
    except OSError:
        return ()
    return tuple({(each.table, each.operation, each.run_id): each for each in _decoded(lines, str(path))}.values())


def _decoded(lines: Sequence[bytes], subject: str) -> Iterator[Measured]:
    for line in lines:
        with suppress(ValueError, RecursionError, CorruptMetadata):
            yield decode(Measured, json_value(line), subject)


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Lines of several processes that append at once do not mix. One that is added during the cut is lost.
    with path.open("a+b") as sink:
        sink.write(line.encode("ascii"))
        sink.flush()
        if sink.tell() > _MOST_BYTES:
            sink.seek(sink.tell() - _MOST_BYTES // 2)
            kept = sink.read().split(b"\n", 1)[-1]
            path.write_bytes(kept)


def _of_table(reports_dir: str | Path, table: str) -> Path:
    return Path(reports_dir) / LEDGER / "tables" / f"{slug(table)}.jsonl"


def _of_format(reports_dir: str | Path, document: RunDocument) -> Path:
    return _format_path(reports_dir, document.format, document.operation)


def _format_path(reports_dir: str | Path, format: str, operation: Operation) -> Path:
    return Path(reports_dir) / LEDGER / "formats" / f"{slug(format)}-{operation}.jsonl"
