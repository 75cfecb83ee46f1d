"""The reader on tables that engines wrote: the rows that Iceberg Java read, whole, filtered and in the past."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from samples.iceberg_places import CATALOG, place
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.lake_rows import Rows
from tests.formats.iceberg import runs
from tests.formats.iceberg.golden_tables import GOLDEN, KEPT
from tests.formats.iceberg.recipe_fixtures import Made
from tests.formats.iceberg.shown import canonical_rows, snapshot_of
from tests.support.read_conditions import require_filters_agree

import nightkeep
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.iceberg.reading.files import partition_spans
from nightkeep.formats.iceberg.reading.versions import find_version

SAMPLES = Path(__file__).parents[4] / "samples" / "iceberg"
UNREADABLE = "partition_types_v2"


@pytest.mark.few(10)
@pytest.mark.parametrize("name", [name for name in KEPT if name != UNREADABLE])
def test_the_reader_shows_what_java_showed(golden: Made, name: str) -> None:
    expected = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text())).ordered()
    table = golden(name)
    with runs.configured(table.warehouse):
        address = str(runs.address(table))
        found = nightkeep.read(address).read_all()
        shown = [column for column in expected.columns if column in found.column_names]
        assert set(shown) == set(found.column_names)
        ours = canonical_rows(found, snapshot_of(table).schema, shown).dicts()
        dicts = [{column: row[column] for column in shown} for row in expected.dicts()]
        assert sorted(map(repr, ours)) == sorted(map(repr, dicts))
        require_filters_agree(lambda where: nightkeep.read(address, where=where).read_all(), found, seed=len(name))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The samples' catalog, configured for pyiceberg."""
    folder = tmp_path_factory.mktemp("placed") / "lake"
    place(SAMPLES, folder)
    with runs.configured(Warehouse(CATALOG, folder)):
        yield f"iceberg:{CATALOG}/shop"


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "rows"), (("orders", 11_815), ("customers", 7_955)))
def test_filters_find_the_rows_of_samples(name: str, rows: int, lake: str) -> None:
    address = f"{lake}.{name}"
    found = nightkeep.read(address).read_all()
    assert found.num_rows == rows
    assert require_filters_agree(lambda where: nightkeep.read(address, where=where).read_all(), found, seed=5) > 4


def test_partitions_and_files_are_left_out(lake: str) -> None:
    text = str(nightkeep.read_plan(f"{lake}.orders", where="day = DATE '2026-11-02' AND order_id < 0"))
    assert "3 of 4 partitions left out by partition values" in text
    assert "files left out by statistics of files" in text
    found = nightkeep.read(f"{lake}.orders", where="day = DATE '2026-11-02'", columns=["day"]).read_all()
    whole = nightkeep.read(f"{lake}.orders", columns=["day"]).read_all()
    assert found.num_rows == sum(str(day) == "2026-11-02" for day in whole.column("day").to_pylist())


def test_views_and_versions_that_are_not_there_are_refused(lake: str, golden: Made) -> None:
    with pytest.raises(RefusedTable, match="view raw of a table with equality deletes is not handled"):
        nightkeep.read(f"{lake}.orders", view="raw")
    with pytest.raises(RefusedTable, match="view read-optimized is not handled"):
        nightkeep.read(f"{lake}.orders", view="read-optimized")
    with pytest.raises(UsageError, match=r"expected a snapshot of the table, such as \d+.*, found 5"):
        nightkeep.read(f"{lake}.orders", version=5)
    with pytest.raises(UsageError, match="expected a tag among none, found 'gone'"):
        nightkeep.read(f"{lake}.orders", tag="gone")


def test_tags_and_older_snapshots_are_read(golden: Made) -> None:
    table = golden("refs_v2")
    with runs.configured(table.warehouse):
        address = str(runs.address(table))
        references = table.document()["refs"]
        tags = [name for name, ref in references.items() if ref["type"] == "tag"]
        branches = [name for name, ref in references.items() if ref["type"] == "branch" and name != "main"]
        assert tags and branches
        for tag in tags:
            version = references[tag]["snapshot-id"]
            tagged, numbered = nightkeep.read(address, tag=tag), nightkeep.read(address, version=version)
            assert tagged.read_all() == numbered.read_all()
        with pytest.raises(RefusedTable, match=f"branch {branches[0]} is not read"):
            nightkeep.read(address, tag=branches[0])


def test_only_plain_values_of_partitions_are_bounds(golden: Made) -> None:
    table = golden("transforms_v2")
    with runs.configured(table.warehouse):
        opened = runs.opened(table)
        assert opened.reading is not None
        snapshot = opened.reading.snapshot()
        names = {(field.name,) for field in snapshot.schema.current.fields}
        transforms = {str(f.transform) for spec in snapshot.schema.specs.values() for f in spec.fields}
        assert transforms - {"identity"}
        for unit in snapshot.units:
            for spans in partition_spans(unit, names).values():
                assert spans.lows == spans.highs and isinstance(spans.lows, pa.Array)
    assert find_version.__name__ == "find_version"


def test_a_uuid_has_the_type_that_arrow_has_for_it(golden: Made) -> None:
    """Also in a list of columns and under a condition; the data source of Spark reads its bytes."""
    table = golden("types_v3")
    with runs.configured(table.warehouse):
        address = str(runs.address(table))
        found = nightkeep.read(address).read_all()
        names = [field.name for field in found.schema if field.type == pa.uuid()]
        assert names and all(found.column(name).combine_chunks().storage.type == pa.binary(16) for name in names)
        filtered = nightkeep.read(address, columns=names[:1], where=f"{names[0]} IS NOT NULL").read_all()
        assert filtered.schema.field(names[0]).type == pa.uuid()
        assert filtered.num_rows == found.num_rows - found.column(names[0]).null_count
