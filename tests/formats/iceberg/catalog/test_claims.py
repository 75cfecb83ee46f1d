"""Whose a folder is, the catalog tells: a table whose metadata states otherwise reaches no other table's files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import configured, folder, opened
from tests.formats.iceberg.sweeping import UUID, aged, now_ms, planted, rewritten, swept
from tests.support.table_storage import storage_of

from nightkeep.errors import RefusedTable
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import purge, restore

SCHEMA = pa.schema([("id", pa.int64())])
ACTING = [SweepMode.QUARANTINE, SweepMode.DELETE]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with configured(Warehouse("owned", tmp_path / "lake")) as found:
        found.folder.mkdir()
        catalog(found).create_namespace("db")
        yield found


def catalog(warehouse: Warehouse) -> SqlCatalog:
    return SqlCatalog(warehouse.name, uri=f"sqlite:///{warehouse.database}", warehouse=warehouse.location)


def made(warehouse: Warehouse, name: str, location: str | None = None, rows: int = 3, **properties: str) -> Table:
    place = location or f"{warehouse.location}/db/{name}"
    table = catalog(warehouse).create_table(f"db.{name}", SCHEMA, place, properties=properties)
    for number in range(rows):
        table.append(pa.table({"id": [number]}, SCHEMA))
    aged(warehouse.folder)
    return warehouse.table(f"db.{name}")


def files(table: Table) -> dict[str, bytes]:
    """Also of a table that the catalog knows no more."""
    place = table.warehouse.folder / table.name.replace(".", "/")
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def pretending(liar: Table, victim: Table) -> None:
    """The liar's metadata claims to be the victim's, as of its first version, and names all of its metadata files."""
    theirs = victim.document()
    versions = sorted((folder(victim) / "metadata").glob("*.metadata.json"))
    first = json.loads(versions[1].read_text())
    log = [{"metadata-file": f"file://{path}", "timestamp-ms": 1} for path in versions[:-1]]
    rewritten(
        liar, **{**first, "location": theirs["location"], "table-uuid": theirs["table-uuid"], "metadata-log": log}
    )


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("mode", SweepMode)
def test_a_table_that_claims_to_be_another_sweeps_nothing_of_it(
    mode: SweepMode, outside: bool, warehouse: Warehouse
) -> None:
    liar, victim = made(warehouse, "a"), made(warehouse, "b")
    pretending(liar, victim)
    before = files(victim)
    with pytest.raises(RefusedTable, match=r"lake/db/b is claimed by table db\.b of the same catalog"):
        swept(liar, mode, outside=outside)
    with pytest.raises(RefusedTable, match=r"is claimed by table db\.a"):
        swept(victim, mode)
    assert files(victim) == before


@pytest.mark.parametrize("mode", SweepMode)
def test_what_no_table_of_the_catalog_claims_is_vouched_for_or_left_alone(
    mode: SweepMode, warehouse: Warehouse
) -> None:
    """A table of another catalog, say."""
    liar, victim = made(warehouse, "a"), made(warehouse, "b")
    pretending(liar, victim)
    catalog(warehouse).drop_table("db.b")
    before = files(victim)
    with pytest.raises(RefusedTable, match=r"its own metadata file is not there; set sweep\.outside"):
        swept(liar, mode)
    assert files(victim) == before
    assert swept(liar, outside=True).orphans


def test_a_table_that_claims_to_be_another_lets_none_of_its_files_expire(warehouse: Warehouse) -> None:
    liar, victim = made(warehouse, "a"), made(warehouse, "b")
    pretending(liar, victim)
    theirs = victim.document()
    rewritten(liar, **{**theirs, "snapshots": [{**s, "timestamp-ms": i} for i, s in enumerate(theirs["snapshots"])]})
    before = files(victim)
    for dropped in (False, True):
        if dropped:
            catalog(warehouse).drop_table("db.b")
        try:
            done = expired(liar)
            assert dropped and done.acted.gone.files == 0
        except RefusedTable as refusal:
            assert "db.b" in str(refusal) or "not created, moved or deleted" in str(refusal)
        assert {name: data for name, data in files(victim).items() if name in before} == before


def expired(table: Table, **order: Any) -> Any:
    now = now_ms()
    asked = ExpireOrder(
        SweepMode.DELETE, ExpireRequest(now, older_than_ms=0, retain_last=1), Retention(now, 0), **order
    )
    return expire_versions(
        opened(table).retention, asked, Run("expire", "0" * 16, "a", now), sets=MemorySets, before=lambda _: None
    )


def test_a_forged_quarantine_of_a_table_brings_nothing_into_another(warehouse: Warehouse, tmp_path: Path) -> None:
    liar, victim = made(warehouse, "a"), made(warehouse, "b")
    planted(liar, f"data/00000-0-{UUID}-00001.parquet")
    assert swept(liar, SweepMode.QUARANTINE).swept.acted.files == 1
    (plan,) = folder(liar).glob("_nightkeep/quarantine/*/plan-00000.jsonl")
    head, line = map(json.loads, plan.read_text().splitlines())
    before = files(victim)
    for path in (f"{folder(victim)}/data/new.parquet", f"{tmp_path}/anywhere", "etc/cron.d/new"):
        plan.write_text(f"{json.dumps(head)}\n{json.dumps({**line, 'path': path.lstrip('/')})}\n")
        with pytest.raises(Exception, match="in the table's own folders"):
            restore(opened(liar).retention.table_files(), "sweep", now_ms=now_ms())
    assert files(victim) == before and not (tmp_path / "anywhere").exists()
    plan.write_text(f"{json.dumps(head)}\n{json.dumps(line)}\n")
    assert restore(opened(liar).retention.table_files(), "sweep", now_ms=now_ms()).files == 1


def test_a_quarantine_of_another_table_is_not_purged(warehouse: Warehouse) -> None:
    liar, victim = made(warehouse, "a"), made(warehouse, "b")
    planted(victim, f"data/00000-0-{UUID}-00001.parquet")
    assert swept(victim, SweepMode.QUARANTINE).swept.acted.files == 1
    pretending(liar, victim)
    catalog(warehouse).drop_table("db.b")
    before = files(victim)
    assert purge(opened(liar).retention.table_files(), now_ms=now_ms() * 2, older_than_ms=0).files == 0
    assert files(victim) == before


def test_a_table_in_the_folder_of_another_is_left_alone(warehouse: Warehouse) -> None:
    outer = made(warehouse, "a")
    inner = made(warehouse, "b", f"{warehouse.location}/db/a/data/deeper")
    orphan = planted(outer, f"data/00000-0-{UUID}-00001.parquet")
    planted(inner, f"data/00000-0-{UUID}-00002.parquet", f"00000-0-{UUID}-00003.parquet")
    assert swept(outer, SweepMode.DELETE).orphans.keys() == orphan
    with pytest.raises(RefusedTable, match=r"claimed by table db\.a"):
        swept(inner, SweepMode.DELETE)


def test_a_table_that_is_registered_twice_is_left_alone(warehouse: Warehouse) -> None:
    table = made(warehouse, "a")
    catalog(warehouse).register_table("db.again", f"file://{table.metadata}")
    planted(table, f"data/00000-0-{UUID}-00001.parquet")
    with pytest.raises(RefusedTable, match=r"claimed by table db\.again"):
        swept(table, SweepMode.DELETE)


def test_new_files_go_into_no_folder_that_another_table_claims(warehouse: Warehouse) -> None:
    victim = made(warehouse, "b")
    liar = made(warehouse, "a", rows=0, **{"write.data.path": f"file://{folder(victim)}/data"})
    fine = made(warehouse, "c", **{"write.data.path": f"{warehouse.location}/fast/c"})
    theirs, elsewhere = str(folder(victim) / "data/x")[1:], str(warehouse.folder / "fast/c/x")[1:]
    for name in (theirs, elsewhere, "etc/cron.d/x"):
        with pytest.raises(RefusedTable, match="not created, moved or deleted"):
            storage_of(opened(liar)).put(name, b"")
    storage_of(opened(fine)).put(elsewhere, b"")
    storage_of(opened(liar)).put(str(folder(liar) / "data/x")[1:], b"")
    assert not (folder(victim) / "data/x").exists()


def test_an_honest_table_beside_others_is_swept(warehouse: Warehouse) -> None:
    table = made(warehouse, "a")
    made(warehouse, "ab")
    orphan = planted(table, f"data/00000-0-{UUID}-00001.parquet")
    done = swept(table, SweepMode.DELETE)
    assert (done.swept.outcome, done.orphans.keys()) == (Outcome.VERIFIED, orphan)
