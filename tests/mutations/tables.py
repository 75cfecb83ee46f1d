"""Small real tables of each format, in a folder of their own; and all that is read of one without an engine."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from samples.iceberg_places import Move

from nightkeep.errors import NightkeepError, RefusedTable
from nightkeep.formats import open_table
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.format import table_of
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, decode
from nightkeep.formats.iceberg.retention.table_files import find_table_files
from nightkeep.model import Address, Request, View
from nightkeep.protocol.table_files import ExpireRequest, Retention, TableFiles
from nightkeep.stages.plan import plan
from nightkeep.storage import LocalStorage

ROOT = Path(__file__).parents[2]
GOLDEN_ICEBERG = Path("/var/tmp/nightkeep-golden")
NOW_MS = 1_800_000_000_000

DELTA = (
    "checkpoint_v1",
    "checkpoint_v1_parts",
    "checkpoint_v1_struct",
    "checkpoint_v2_json",
    "checkpoint_v2_parquet",
    "vectors",
    "inline_vector",
    "vectors_of_partitions",
    "row_tracking",
    "in_commit_timestamps",
    "mapping_name",
    "partition_types",
    "type_widening",
    "clustered",
    "stats_nested",
    "random_prefixes",
)
ICEBERG = (
    "vectors",
    "vectors_named_parquet",
    "positions",
    "upgraded",
    "lineage",
    "history_v2",
    "mixed_keys_v2",
    "partition_types_v2",
    "statistics_v3",
    "types_v3",
    "refs_v2",
    "specs_deleted_v2",
)
PAIMON = (
    "ledger",
    "untouched",
    "stock",
    "events_input",
    "customers",
    "orders",
    "positions",
    "baskets",
    "visits",
    "parcels",
    "prices",
    "events_raw",
)


@dataclass(frozen=True)
class Known(TableHandle):
    """A table whose metadata file nobody has to ask for."""

    location: str = ""

    def answer(self) -> tuple[Raw | None, str]:
        return None, self.location

    def whole(self) -> tuple[Raw, str]:
        return decode(self.storage.read(self.location.removeprefix("file:/")), subject=self.location), self.location

    @property
    def commits_any_version(self) -> bool:
        return True


def copied(format: str, name: str, folder: Path) -> Path:
    """A table in `folder`, which is empty."""
    match format:
        case "paimon":
            return Path(shutil.copytree(ROOT / "samples/paimon/shop.db" / name, folder / name))
        case "delta":
            return Path(shutil.copytree(ROOT / "tests/golden/delta" / name / "table", folder / name))
    table = folder / "db" / name
    shutil.copytree(ROOT / "tests/golden/iceberg" / name / "table", table)
    Move(folder, GOLDEN_ICEBERG, folder).run()
    return table


NAMES: Mapping[str, tuple[str, ...]] = {"paimon": PAIMON, "delta": DELTA, "iceberg": ICEBERG}


def opened(format: str, folder: Path) -> Any:
    if format != "iceberg":
        return open_table(Address(format, str(folder), folder.name))
    newest = max((folder / "metadata").glob("*.metadata.json"), key=lambda path: int(path.name.partition("-")[0]))
    handle = Known("c", ("db", folder.name), LocalStorage("/"), f"file:{newest}")
    table = table_of(Address("iceberg", f"c/db.{folder.name}", folder.name), handle)
    assert table.retention is not None

    def folders() -> TableFiles:
        """Without asking a catalog for its other tables."""
        return find_table_files(table.address, handle.storage, handle.whole())

    return replace(table, retention=replace(table.retention, table_files=folders))


def metadata_files(format: str, folder: Path) -> list[Path]:
    """What is changed: every file but those that hold rows, and Parquet files of deletes among them."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    if format == "paimon":
        return [path for path in found if "bucket-" not in str(path.relative_to(folder))]
    if format == "delta":
        return [path for path in found if "_delta_log" in path.parts or path.suffix == ".bin"]
    return [
        path for path in found if path.suffix != ".parquet" or path.read_bytes()[:4] == b"PFA1" or "delete" in path.name
    ]


def read(format: str, folder: Path) -> list[str]:
    """Open, plan every operation, read vectors and all that a sweep and an expiry ask for; the errors on the way."""
    told: list[str] = []
    for step in _steps(format, folder):
        try:
            step()
        except NightkeepError as error:
            told.append(f"{type(error).__name__}: {error}")
    return told


def _steps(format: str, folder: Path) -> Iterator[Callable[[], object]]:
    table: list[Any] = []
    yield lambda: table.append(opened(format, folder))
    if not table:
        return
    (found,) = table
    yield lambda: _plans(found)
    yield lambda: _reached(found)
    yield lambda: found.retention.expiry(ExpireRequest(NOW_MS))
    yield found.retention.table_files


def _plans(table: Any) -> None:
    """Raises RefusedTable of a table that no operation is for."""
    snapshot, refused = table.snapshot(), list[RefusedTable]()
    for operation in table.operations:
        try:
            plan(table, snapshot, Request(operation, NOW_MS))
        except RefusedTable as refusal:
            refused.append(refusal)
    if len(refused) == len(table.operations):
        raise refused[0]
    for unit in snapshot.units:
        table.gate.survivors(unit, View.RAW)


def _reached(table: Any) -> None:
    seen = set()
    files = table.retention
    for root in files.roots(Retention(NOW_MS, 0)):
        for source in files.reach(root).sources:
            if source not in seen:
                seen.add(source)
                for _ in files.live(source):
                    pass
