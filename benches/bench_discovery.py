"""Many tables in one place -> how long it takes to find them, and how many requests.

Run by `make bench-discovery` (BENCH="--tables 200"). Tables are copies of samples: in a Paimon warehouse and a folder
of Delta tables, each on local disk and in a bucket, in an Iceberg catalog in SQLite, and in a Hive metastore.
Requests to the bucket are counted by its server, statements by SQLAlchemy, calls of a metastore by its client.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import Database
from pyiceberg.catalog.sql import SqlCatalog
from samples.iceberg_places import current_metadata, place
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tests.drivers.hive_metastore import serve_metastore
from tests.drivers.s3_server import serve_s3
from tests.metastores.metastore_world import DELTA, hive_table

from nightkeep.discovery import find_tables
from nightkeep.metastores.hive_connections import MetastoreConnections
from nightkeep.policy import load_usable
from nightkeep.storage import LocalStorage

ROOT = Path(__file__).parents[1]
SAMPLES = {"paimon": ROOT / "samples/paimon/shop.db/untouched", "delta": ROOT / "samples/delta/shop.db/accounts"}
LISTINGS = ("list", "folders")
Counted = list[str]


def filled(folder: Path, kind: str, count: int) -> Path:
    """A folder with so many tables in twenty databases."""
    for number in range(count):
        shutil.copytree(SAMPLES[kind], folder / kind / f"db{number % 20}.db" / f"t{number}")
    return folder / kind


@contextmanager
def listings() -> Iterator[Counted]:
    """Listings of folders on local disk, while the context lasts."""
    counted = Counted()
    with (
        patch.object(LocalStorage, "list", _counting(LocalStorage.list, counted)),
        patch.object(LocalStorage, "folders", _counting(LocalStorage.folders, counted)),
    ):
        yield counted


def _counting(method: Callable[..., object], counted: Counted) -> Callable[..., object]:
    def count(*arguments: object, **named: object) -> object:
        counted.append(method.__name__)
        return method(*arguments, **named)

    return count


@contextmanager
def statements() -> Iterator[Counted]:
    counted = Counted()

    def note(*arguments: object) -> None:
        counted.append(str(arguments[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield counted
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@contextmanager
def calls() -> Iterator[Counted]:
    counted = Counted()
    names = ("get_all_databases", "get_all_tables", "get_table_objects_by_name")
    with (
        patch.object(Client, names[0], _counting(Client.get_all_databases, counted)),
        patch.object(Client, names[1], _counting(Client.get_all_tables, counted)),
        patch.object(Client, names[2], _counting(Client.get_table_objects_by_name, counted)),
    ):
        yield counted


@contextmanager
def logged(log: Path) -> Iterator[Counted]:
    """Requests that a server logs, a line each."""
    before, counted = len(_lines(log)), Counted()
    yield counted
    time.sleep(0.5)
    counted += _lines(log)[before:]


def _lines(log: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return log.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def measure(title: str, entry: str, count: int, what: str, counting: Callable[[], object]) -> None:
    """Two runs for time, and one more for the number of requests."""
    places = load_usable("tables.yaml", text=f"version: 1\ndiscover: [{entry}]\n").discoveries
    seconds, cpu, started, spent = [], [], time.perf_counter(), time.process_time()
    for _ in range(2):
        started, spent = time.perf_counter(), time.process_time()
        found = find_tables(places)
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - spent)
        if len(found.tables) != count or found.unlistable:
            raise SystemExit(f"{title}: expected {count} tables, found {len(found.tables)}: {found.unlistable[:1]}")
    with counting() as counted:  # type: ignore[attr-defined]
        find_tables(places)
    taken = f"{seconds[0]:6.2f} s first, {seconds[1]:5.2f} s again, {cpu[1]:5.2f} CPU s"
    print(f"{title:<24} {taken}, {len(counted):6,} {what}", flush=True)


def on_disk(folder: Path, count: int) -> None:
    for kind in SAMPLES:
        filled(folder, kind, count)
        measure(f"{kind}, local disk", f"{{{kind}: {folder}/{kind}}}", count, "listings", listings)


def in_a_bucket(folder: Path, count: int) -> None:
    log = folder / "requests.log"
    with serve_s3(requests=log) as server:
        os.environ.update(server.environment())
        bucket = server.bucket()
        for kind in SAMPLES:
            filled(bucket.folder, kind, count)
            measure(f"{kind}, S3", f"{{{kind}: '{bucket.uri}/{kind}'}}", count, "requests", lambda: logged(log))


def in_a_catalog(folder: Path, count: int) -> None:
    (folder / "iceberg").mkdir()
    uri = f"sqlite:///{folder}/iceberg/catalog.db"
    place(ROOT / "samples/iceberg", folder / "iceberg" / "sample")
    metadata = current_metadata(folder / "iceberg" / "sample" / "shop" / "orders")
    catalog = SqlCatalog("many", uri=uri)
    for number in range(20):
        catalog.create_namespace(f"db{number}")
    for number in range(count):
        catalog.register_table(f"db{number % 20}.t{number}", f"file:{metadata}")
    catalog.close()
    os.environ.update({"PYICEBERG_CATALOG__MANY__TYPE": "sql", "PYICEBERG_CATALOG__MANY__URI": uri})
    measure("iceberg, SQLite", "{iceberg: many}", count, "statements", statements)


def in_a_metastore(count: int) -> None:
    with serve_metastore() as server:
        with MetastoreConnections({"uri": server.uri}) as client:
            client.create_database(Database(name="shop", locationUri="file:/nowhere", parameters={}))
            for number in range(count):
                client.create_table(hive_table(f"t{number}", f"s3://nowhere/t{number}", DELTA))
        measure("delta, Hive metastore", f"{{hive: '{server.uri}'}}", count, "calls", calls)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=2000, help="tables in each place")
    asked = parser.parse_args()
    packages = ", ".join(f"{name} {version(name)}" for name in ("obstore", "pyiceberg", "thrift"))
    print(f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {packages}")
    print(f"{asked.tables:,} tables in each place")
    with tempfile.TemporaryDirectory(prefix="nightkeep-discovery-") as folder:
        on_disk(Path(folder), asked.tables)
        in_a_catalog(Path(folder), asked.tables)
        in_a_bucket(Path(folder), asked.tables)
        in_a_metastore(asked.tables)


if __name__ == "__main__":
    main()
