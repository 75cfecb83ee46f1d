"""Every golden table and every sample, as each engine and we read it. One process of an engine reads all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.iceberg_places import place
from tests.formats.iceberg.damaged import iceberg_tables
from tests.formats.iceberg.golden_tables import KEPT
from tests.formats.iceberg.runs import address
from tests.other_readers.engines import assert_read_alike, other_reader
from tests.support.extended import some_extended

from nightkeep.formats import open_table
from nightkeep.model import Address
from nightkeep.model.check_values import ReaderName
from nightkeep.other_readers.reader_process import ReaderProcess

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DELTA = {
    path.parent.name if path.name == "table" else path.name: path
    for path in (*ROOT.glob("tests/golden/delta/*/table"), *ROOT.glob("samples/delta/shop.db/*"))
    # Refused by us.
    if path.parent.name != "variant"
}
PAIMON = {path.name: path for path in ROOT.glob("samples/paimon/shop.db/*")}
ICEBERG = (*KEPT, "orders", "customers")


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[ReaderName, ReaderProcess]]:
    opened = {name: ReaderProcess(other_reader(name)) for name in ReaderName}
    yield opened
    for process in opened.values():
        process.close()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Address]]:
    """The golden tables and the samples of Iceberg, in catalogs."""
    folder, before = tmp_path_factory.mktemp("lake"), dict(os.environ)
    golden = {name: address(table) for name, table in iceberg_tables(folder, KEPT).items()}
    os.environ["PYICEBERG_CATALOG__LAKE__URI"] = f"sqlite:///{place(ROOT / 'samples/iceberg', folder / 'samples')}"
    found = (path for path in (folder / "samples").glob("*/*") if path.is_dir())
    yield golden | {path.name: Address("iceberg", f"lake/{path.parent.name}.{path.name}", path.name) for path in found}
    os.environ.clear()
    os.environ.update(before)


def newest(address: Address) -> int:
    return open_table(address).snapshot().version


@pytest.mark.few(4)
@pytest.mark.parametrize("table", some_extended(sorted(DELTA), keep=12))
def test_deltalake(table: str, processes: dict[ReaderName, ReaderProcess]) -> None:
    where = Address("delta", str(DELTA[table]), table)
    assert_read_alike(where, table, newest(where), processes[ReaderName.DELTALAKE])


@pytest.mark.few(2)
@pytest.mark.parametrize("table", some_extended(sorted(DELTA), keep=4))
def test_duckdb_on_delta(table: str, processes: dict[ReaderName, ReaderProcess]) -> None:
    where = Address("delta", str(DELTA[table]), table)
    assert_read_alike(where, table, newest(where), processes[ReaderName.DUCKDB])


@pytest.mark.few(1)
@pytest.mark.parametrize("table", some_extended(ICEBERG, keep=4))
def test_duckdb_on_iceberg(table: str, lake: dict[str, Address], processes: dict[ReaderName, ReaderProcess]) -> None:
    assert_read_alike(lake[table], table, newest(lake[table]), processes[ReaderName.DUCKDB])


@pytest.mark.few(2)
@pytest.mark.parametrize("table", some_extended(ICEBERG, keep=12))
def test_pyiceberg(table: str, lake: dict[str, Address], processes: dict[ReaderName, ReaderProcess]) -> None:
    assert_read_alike(lake[table], table, newest(lake[table]), processes[ReaderName.PYICEBERG])


@pytest.mark.few(2)
@pytest.mark.parametrize("table", sorted(PAIMON))
def test_pypaimon(table: str, processes: dict[ReaderName, ReaderProcess]) -> None:
    where = Address("paimon", str(PAIMON[table]), table)
    assert_read_alike(where, table, newest(where), processes[ReaderName.PYPAIMON])
