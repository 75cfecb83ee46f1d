"""Every table of the recipes, packed and then laid along a curve: what Java, or Spark, sees of it stays."""

from collections.abc import Callable, Iterator

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.golden_tables import NOT_READ_BY_JAVA, RECIPES, known
from tests.formats.iceberg.optimized_lake import OptimizedLake, by
from tests.support.extended import some_extended

from nightkeep.formats.iceberg.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.iceberg.rewrite.placed_files import placed_files
from nightkeep.model import Operation, Outcome

pytestmark = pytest.mark.in_turn("version")

LakeOf = Callable[[str], OptimizedLake]
REFUSED = {"avro_data": "new files in Avro"}
POSITIONS_OF_VERSION_2 = ("dead_files_v2", "many_v2", "odd_paths_v2", "specs_deleted_v2", "upserts_v2")
NAMES = [
    name
    for name, recipe in RECIPES.items()
    if not recipe.by_spark
    and (not name.endswith("_v2") or name in POSITIONS_OF_VERSION_2)
    and not known(NOT_READ_BY_JAVA, name)
    and not known(REFUSED, name)
]


@pytest.fixture
def lake_of(
    iceberg: Warehouse, iceberg_java: IcebergJava, make: Callable[[str], Table]
) -> Iterator[Callable[[str], OptimizedLake]]:
    with runs.configured(iceberg):
        yield lambda name: OptimizedLake(iceberg_java, make(name))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", some_extended(NAMES, keep=10))
def test_a_recipe_reads_as_before(name: str, lake_of: LakeOf) -> None:
    lake = lake_of(name)
    lake.night(full=True)
    snapshot = lake.snapshot
    assert not [each for unit in snapshot.units for each in placed_files(unit) if each.deletes]
    assert not lake.plan(full=True).units
    constant = {name for unit in snapshot.units for name in unit.partition}
    columns = [".".join(leaf.path) for leaf in indexed_leaves(snapshot.schema)]
    clustering = by(*[column for column in columns if column not in constant][:3])
    lake.night(clustering=clustering)
    assert not lake.plan(clustering=clustering).units


@pytest.mark.extended
@pytest.mark.parametrize("version", (2, 3))
def test_a_key_that_was_dropped_still_deletes(version: int, lake_of: LakeOf, iceberg_spark: IcebergSpark) -> None:
    """Java's own reader fails on the table until its deletes are applied."""
    lake = lake_of(f"dropped_key_v{version}")
    before = iceberg_spark.read(lake.table)
    done = runs.care_for(lake.table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert iceberg_spark.read(lake.table) == before == lake.java.read(lake.table)


@pytest.mark.parametrize("name", ["avro_data_v2", "avro_data_v3"])
def test_what_is_refused_is_named(name: str, lake_of: LakeOf) -> None:
    lake = lake_of(name)
    before = runs.contents(lake.table)
    done = runs.care_for(lake.table, operation=Operation.OPTIMIZE)
    assert done.outcome is Outcome.REFUSED and REFUSED[name.partition("_v2")[0].partition("_v3")[0]] in str(done.reason)
    assert runs.contents(lake.table) == before
