"""The file in which a job passes its outcomes to the task that submitted it, and the tables at work when it died.

With reports in a bucket it is there as well, so that the job's driver may run on another machine than the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import uuid4

from nightkeep.places import forget_old, is_address, read_text, remove_file, report_store
from nightkeep.records import RESULTS
from nightkeep.records.job_result import at_work_file, end_file

_KEPT_SECONDS: Final = 30 * 24 * 60 * 60


@contextmanager
def result_file(reports: str) -> Iterator[str]:
    """The address of the result file of one job, which is removed at the end."""
    if not is_address(reports):
        with TemporaryDirectory(prefix="nightkeep-") as folder:
            yield str(Path(folder) / "result.json")
        return
    store = report_store(reports)
    address = store.address(f"{RESULTS}/{uuid4().hex}.json")
    # What tasks left that were killed.
    forget_old(store, RESULTS, seconds=_KEPT_SECONDS)
    try:
        yield address
    finally:
        with suppress(OSError):
            remove_file(address)
            remove_file(at_work_file(address))
            remove_file(end_file(address))


def tables_at_death(result: str) -> tuple[str, ...]:
    """The tables at work when a job died, each a line of its file."""
    with suppress(OSError):
        return tuple(filter(None, (read_text(at_work_file(result)) or "").split("\n")))
    return ()
