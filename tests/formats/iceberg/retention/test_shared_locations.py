"""One data path for tables of two catalogs whose locations end alike: nothing in it tells whose a file is."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import configured, folder
from tests.formats.iceberg.sweeping import UUID, aged, planted, stored, swept

from nightkeep.errors import EvidenceError
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.sweep import sweep_facts

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Sequence[Table]]:
    """Of db.t in the catalogs prod and dev, three rows each."""
    with ExitStack() as opened:
        made = []
        for name in ("prod", "dev"):
            warehouse = Warehouse(name, tmp_path / name)
            warehouse.folder.mkdir()
            opened.enter_context(configured(warehouse))
            table = catalog(warehouse).create_table(
                "db.t", SCHEMA, f"{warehouse.location}/db/t", properties={"write.data.path": f"file://{tmp_path}/db/t"}
            )
            for number in range(3):
                table.append(pa.table({"id": [number]}, SCHEMA))
            made.append(warehouse.table())
        aged(tmp_path / "db", tmp_path / "prod/db", tmp_path / "dev/db")
        yield made


def catalog(warehouse: Warehouse) -> SqlCatalog:
    found = SqlCatalog(warehouse.name, uri=f"sqlite:///{warehouse.database}", warehouse=warehouse.location)
    found.create_namespace_if_not_exists("db")
    return found


def rows(table: Table) -> list[int]:
    found = catalog(table.warehouse).load_table(table.name).scan().to_arrow()["id"].to_pylist()
    return sorted(map(int, found))


def test_a_folder_outside_of_the_table_is_swept_for_whoever_vouches_for_it_alone(tables: Sequence[Table]) -> None:
    prod, dev = tables
    orphan = planted(prod, f"data/00000-0-{UUID}-00001.parquet")
    outside = stored(folder(prod).parents[2] / "db/t")
    found = swept(prod, SweepMode.QUARANTINE)
    assert found.orphans.keys() == orphan
    assert found.swept.unseen == (outside,)
    (note,) = sweep_facts(found.swept, root="/")["notes"]  # type: ignore[misc]
    assert str(note).startswith(f"/{outside} was not looked into") and "sweep.outside" in str(note)
    assert rows(prod) == rows(dev) == [0, 1, 2]
    # And this is what it would have done.
    found = swept(prod, outside=True)
    assert found.swept.unseen == ()
    assert len(found.orphans) == 3 and all(name.startswith(f"{outside}/") for name in found.orphans)


def test_a_file_of_ours_that_is_missing_there_still_stops_the_sweep(tables: Sequence[Table]) -> None:
    prod, dev = tables
    planted(prod, f"data/00000-0-{UUID}-00001.parquet")
    (file, *_) = (task.file.file_path for task in catalog(prod.warehouse).load_table("db.t").scan().plan_files())
    Path("/" + stored(file.removeprefix("file://"))).unlink()
    with pytest.raises(EvidenceError, match="is not there"):
        swept(prod, SweepMode.DELETE)
    assert rows(dev) == [0, 1, 2]
