"""A staged candidate of a table with clustering columns -> the same, damaged as the feature forbids."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from tests.formats.delta.clustered_lake import clustered, provided
from tests.formats.delta.hand_made import NOW_MS, HandMade, removal
from tests.formats.delta.laid_anew import a_run
from tests.formats.delta.lake import request
from tests.formats.delta.sabotage import Act, Staged

from nightkeep.formats.delta.format import open_table
from nightkeep.model import Address, Candidate
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.tasks import inline

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("price", pa.float64()),
        ("note", pa.string()),
    ]
)
COLUMNS = ("text", "day", "moment", "price")
"""Clustering columns. By default no column has statistics here, so that none is there but for them."""
_FIRST = datetime(2026, 1, 1, 12, tzinfo=UTC)


def filled(folder: Path) -> HandMade:
    """Files that nobody clustered, and two of another provider."""
    lake = clustered(folder, [[name] for name in COLUMNS], SCHEMA, dataSkippingNumIndexedCols="0")
    for start in range(0, 400, 100):
        lake.append(rows(range(start, start + 100)))
    provided(lake, rows(range(400, 500)), "liquid", files=2)
    return HandMade.at(folder)


def rows(ids: range) -> pa.Table:
    """Texts are longer than the part that a bound keeps, times have microseconds, each column has nulls."""
    known = [n * 7919 % 10007 for n in ids]
    return pa.table(
        {
            "id": list(ids),
            "text": [None if n % 11 == 0 else f"{n:05} {'x' * 40} {n}" for n in known],
            "day": [None if n % 13 == 0 else date(2026, 1, 1) + timedelta(days=n % 300) for n in known],
            "moment": [None if n % 17 == 0 else _FIRST + timedelta(seconds=n, microseconds=n) for n in known],
            "price": [None if n % 19 == 0 else n / 8 for n in known],
            "note": [f"note {n}" for n in ids],
        },
        SCHEMA,
    )


def rewritten(made: HandMade) -> Candidate:
    """What the rule plans, by the rewrite itself."""
    table, run = open_table(Address("delta", str(made.folder), "t")), a_run()
    base = table.snapshot()
    found = plan(table, base, request(target_bytes=8_000))
    return table.commits.stage(base, execute(table, found, run, mapper=inline), run)


def forget_the_clustering_provider(staged: Staged) -> None:
    with staged.adds() as (first, *_):
        del first["clusteringProvider"]


def claim_to_be_another_provider(staged: Staged) -> None:
    """Which would then leave the file, or cluster it again by rules of its own."""
    with staged.adds() as (first, *_):
        first["clusteringProvider"] = "liquid"


def take_a_file_of_another_provider(staged: Staged) -> None:
    """Its rows are the same, in a file of another name that carries ours."""
    file = next(add for add in staged.made.live().values() if add.get("clusteringProvider") == "liquid")
    name = f"part-nk-{staged.candidate.staged[0].split('nk-')[1]}"
    shutil.copyfile(staged.made.folder / file["path"], staged.made.folder / name)
    with staged.actions() as actions:
        (removed_ms,) = {each["remove"]["deletionTimestamp"] for each in actions if "remove" in each}
        actions.append({"remove": removal(file) | {"deletionTimestamp": removed_ms, "dataChange": False}})
        added = {"path": name, "modificationTime": NOW_MS, "dataChange": False, "clusteringProvider": "nightkeep"}
        actions.append({"add": file | added})


def _leave_out(group: str, column: str) -> Act:
    def act(staged: Staged) -> None:
        with staged.stats() as stats:
            del stats[group][column]

    act.__name__ = f"leave_out_{group}_of_{column}"
    return act


def _state(group: str, column: str, stated: object) -> Act:
    """A bound within the values of the file."""

    def act(staged: Staged) -> None:
        with staged.stats() as stats:
            stats[group][column] = stated

    act.__name__ = f"state_wrong_{group}_of_{column}"
    return act


_INNER = {"text": "00500 y", "day": "2026-03-01", "moment": "2026-01-01T12:10:00.000Z", "price": 100.5}
_BELOW = "has a value below the minimum that statistics state"
_ABOVE = "has a value above the maximum that statistics state"

CLUSTERED: dict[Act, str] = {
    forget_the_clustering_provider: "clustering provider None, expected nightkeep",
    claim_to_be_another_provider: "clustering provider liquid, expected nightkeep",
    take_a_file_of_another_provider: "removed, though liquid clustered it, expected it to be left to that",
    **{
        _leave_out(group, column): f"no {group} of the clustering column {column}"
        for column in COLUMNS
        for group in ("minValues", "maxValues", "nullCount")
    },
    **{_state("minValues", column, stated): f"{column} {_BELOW}" for column, stated in _INNER.items()},
    **{_state("maxValues", column, stated): f"{column} {_ABOVE}" for column, stated in _INNER.items()},
}
