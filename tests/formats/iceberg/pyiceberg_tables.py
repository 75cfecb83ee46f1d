"""Tables that pyiceberg makes in any catalog, and the races that every catalog must decide."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.utils.config import Config
from tests.formats.iceberg.catalog_world import next_snapshot

from nightkeep.admission.order import Order
from nightkeep.formats.iceberg.catalog.catalog import TableHandle, open_catalog, open_handle
from nightkeep.formats.iceberg.catalog.metadata_swap import replace
from nightkeep.formats.iceberg.catalog.opening import pointers_of
from nightkeep.model import Address, Operation
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

NAME = "db.events"
ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


def made(catalog: str, *, files: int = 1) -> Catalog:
    """A catalog of pyiceberg's own with the table, which has so many small files."""
    # The settings of now: pyiceberg itself has read them when it was imported.
    theirs = load_catalog(catalog, **(Config().get_catalog_config(catalog) or {}))
    theirs.create_namespace_if_not_exists("db")
    table = theirs.create_table(NAME, ROWS.schema)
    for _ in range(files):
        table.append(ROWS)
    return theirs


def upgrade(catalog: str) -> None:
    """To format version 3, which pyiceberg reads and does not write."""
    ours = handle(catalog)
    raw, location = ours.load()
    pointers = pointers_of(open_catalog(catalog))
    assert pointers is not None
    third = {**raw, "format-version": 3, "next-row-id": 0}
    assert replace(pointers, ours.identifier, ours.storage, after=third, location=location)


def handle(catalog: str) -> TableHandle:
    return open_handle(f"{catalog}/{NAME}")


def rows(theirs: Catalog) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in theirs.load_table(NAME).scan().to_arrow().to_pylist())


def metadata_files(ours: TableHandle) -> set[str]:
    folder = Path("/", ours.load()[1].removeprefix("file:").lstrip("/")).parent
    return {name for name in os.listdir(folder) if name.endswith(".metadata.json")}


def care_for(catalog: str, reports: Path, operation: Operation = Operation.OPTIMIZE) -> RunDocument:
    address = Address("iceberg", f"{catalog}/{NAME}", NAME)
    policy = EffectivePolicy(address, Settings(), {})
    return run_operation(policy, Order(operation, "night", str(reports)), mapper=lambda: inline)


def assert_one_of_many_wins(catalog: str, numbers: Iterable[int] = range(10, 22)) -> None:
    """Commits of many threads on one parent, each on connections of its own: one is published, and leaves a file."""
    ours = handle(catalog)
    raw, _ = ours.load()
    before = metadata_files(ours)
    parent = next_snapshot(raw)["parent-snapshot-id"]
    with ThreadPoolExecutor(12) as pool:
        won = list(pool.map(lambda number: ours.commit(next_snapshot(raw, number), parent), numbers))
    assert won.count(True) == 1
    after, _ = ours.load()
    assert after["current-snapshot-id"] == list(numbers)[won.index(True)]
    assert len(after["snapshots"]) == len(raw["snapshots"]) + 1
    assert len(metadata_files(ours) - before) == 1


def assert_races_with_pyiceberg_lose_nothing(catalog: str, theirs: Catalog, rounds: int = 6) -> None:
    """Their append against our commit on the same parent: who wins is published, and nothing else."""
    for number in range(100, 100 + rounds):
        ours = handle(catalog)
        raw, _ = ours.load()
        snapshot, table = next_snapshot(raw, number), theirs.load_table(NAME)

        def append() -> bool:
            try:
                table.append(ROWS)  # noqa: B023 - called in this round
            except CommitFailedException:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            appended = pool.submit(append)
            committed = ours.commit(snapshot, snapshot["parent-snapshot-id"])
            told = (committed, appended.result(60))
        after, _ = ours.load()
        there, known = ({each["snapshot-id"] for each in loaded["snapshots"]} for loaded in (after, raw))
        added = there - known
        assert len(added) == sum(told) >= 1, told
        assert (number in added) == committed
