"""Reports of many tables over many nights -> what pages, settling and the history cost: seconds, files read, folders
listed.

Run by `make bench-pages` (BENCH="--tables 200 --nights 90"). The documents are small ones that Nightkeep's own writers
store, a night in one process; five tables of each night have work. Beside it: the same after two nights.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nightkeep
from nightkeep.api.stored import shown_history
from nightkeep.model import Operation, Outcome
from nightkeep.nights.run_pages import RunPage, write_run
from nightkeep.nights.settled import JobResult, settle_run
from nightkeep.nights.settled_documents import documents_of
from nightkeep.pages import Links, Overview, render_index, summary_text
from nightkeep.policy import PolicyFile, load
from nightkeep.records import CheckStatus, Expectations, Metrics, RunDocument, UnitResult, document_path, store
from nightkeep.records.bundles import bundled
from nightkeep.storage.local.kept import KeptOnDisk

NIGHT = datetime(2026, 1, 1, 2, tzinfo=UTC)
CHANGED = 5


@dataclass(slots=True)
class Cost:
    seconds: float = 0.0
    read: int = 0
    listed: int = 0

    def __str__(self) -> str:
        return f"{self.seconds:7.2f} s  {self.read:6,} read  {self.listed:5,} listed"


@contextmanager
def measured() -> Iterator[Cost]:
    cost, real_read, real_list = Cost(), KeptOnDisk.read, KeptOnDisk.list

    def read(kept: KeptOnDisk, name: str) -> Any:
        cost.read += 1
        return real_read(kept, name)

    def listed(kept: KeptOnDisk, folder: str) -> Any:
        cost.listed += 1
        return real_list(kept, folder)

    with patch.object(KeptOnDisk, "read", read), patch.object(KeptOnDisk, "list", listed):
        start = time.perf_counter()
        yield cost
        cost.seconds = time.perf_counter() - start


def document(table: str, night: int, outcome: Outcome) -> RunDocument:
    started = NIGHT + timedelta(days=night)
    is_done = outcome is Outcome.VERIFIED
    return RunDocument(
        run_id=f"nightly-{night}:{table}",
        table=table,
        format="delta",
        operation=Operation.OPTIMIZE,
        outcome=outcome,
        reason=None if is_done else "no unit has enough small files",
        base_version=night,
        committed_version=night + 1 if is_done else None,
        units=(UnitResult("", None, outcome, rows=1000, equal=True),) if is_done else (),
        expectations=Expectations(CheckStatus.PASSED if is_done else CheckStatus.NOT_RUN),
        metrics=Metrics(files_before=40, files_after=4 if is_done else 40, seconds={"plan": 0.2}),
        started_at=started,
        finished_at=started + timedelta(seconds=9),
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A place of reports, and what its tasks do."""

    policy: PolicyFile
    reports: str
    tables: Sequence[str]

    def night(self, number: int, tables: Sequence[str]) -> list[JobResult]:
        done = {self.tables[(number + each) % len(self.tables)] for each in range(CHANGED)}
        made = [document(each, number, Outcome.VERIFIED if each in done else Outcome.UNCHANGED) for each in tables]
        with bundled(self.reports, f"nightly-{number}", [(each.table, each.run_id) for each in made]):
            for each in made:
                store(each, self.reports)
        return [self._entry(each) for each in made]

    def page(self, number: int, entries: Sequence[JobResult]) -> dict[str, Cost]:
        tables, prefix = [each.table for each in entries], f"nightly-{number}"
        with measured() as settle:
            settled = settle_run(self.reports, prefix, tables, entries)
        with measured() as page:
            write_run(self.reports, RunPage(prefix, prefix, NIGHT), settled, policy=self.policy)
        with measured() as notify:
            documents_of(settled, self.reports, prefix)
        return {"settle": settle, "page": page, "documents for notify": notify}

    def _entry(self, each: RunDocument) -> JobResult:
        path = document_path(self.reports, each.table, run_id=each.run_id, operation=each.operation)
        reason, version = each.reason or "", each.committed_version
        return JobResult(each.table, each.operation, each.outcome, reason, path, version, checked=version is not None)


def place(folder: Path, tables: Sequence[str]) -> Place:
    listed = "".join(f"\n  - {{name: {name}, table: 'delta:{folder}/{name}'}}" for name in tables)
    file = folder / "tables.yaml"
    file.write_text(f"version: 1\ntables:{listed}\n")
    return Place(load(file), str(folder / "reports"), tables)


def costs(where: Place, nights: int) -> dict[str, Cost]:
    found = dict[str, Cost]()
    for number in range(nights):
        entries = where.night(number, where.tables)
        # The first page builds the index, the second one is that of any other night.
        if number >= nights - 2:
            found = {f"a night: {name}": cost for name, cost in where.page(number, entries).items()}
    entries = where.night(nights, [where.tables[-1]])
    found |= {f"a form: {name}": cost for name, cost in where.page(nights, entries).items()}
    empty = Overview(())
    return found | {
        "an empty index, rendered": _cost(
            lambda: render_index(empty, title="Nightkeep", generated_at=NIGHT, links=Links())
        ),
        "the history": _cost(lambda: summary_text([*nightkeep.history(reports=where.reports)])),
        "the history as text": _cost(lambda: str(shown_history(reports=where.reports))),
        "the last two runs": _cost(lambda: summary_text([*nightkeep.history(last=2, reports=where.reports)])),
        "the history of a table": _cost(
            lambda: summary_text([*nightkeep.history(where.tables[0], reports=where.reports)])
        ),
    }


def _cost(work: Callable[[], object]) -> Cost:
    with measured() as cost:
        work()
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--nights", type=int, default=90)
    options = parser.parse_args()
    tables = [f"shop.t{number:04}" for number in range(options.tables)]
    print(f"Python {platform.python_version()}, {options.tables} tables, {CHANGED} of them with work each night")
    found = []
    for nights in (2, options.nights):
        with tempfile.TemporaryDirectory() as folder:
            found.append(costs(place(Path(folder), tables), nights))
    print(f"{'':32}{'after the second night':40}after night {options.nights}")
    for name, first in found[0].items():
        print(f"{name:32}{first!s:40}{found[1][name]}")


if __name__ == "__main__":
    main()
