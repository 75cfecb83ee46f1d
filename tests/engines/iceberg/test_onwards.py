"""Tables of which we persisted deletes and packed a part -> engines go on with them as with their untouched copies.

The same is done to both; all readers must agree on the rows of both afterwards, and our next night must prove itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg.golden_deletes import ON_READ
from tests.formats.iceberg.golden_shapes import ALL
from tests.formats.iceberg.oracle_readers import Readers
from tests.formats.iceberg.oracle_tables import BY_DAY, COLUMNS, DAYS, Written, arrow, merge
from tests.formats.iceberg.runs import care_for, configured, contents, opened

from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument

pytestmark = pytest.mark.in_turn("version")

ROWS = 60
_NIGHTS = count()


@pytest.fixture
def readers(
    iceberg_java: IcebergJava, iceberg_spark: IcebergSpark, lakes: Lakes, iceberg: Warehouse
) -> Iterator[Readers]:
    with configured(iceberg):
        yield Readers(iceberg_java, iceberg_spark, lakes, iceberg.table("db.ours"))


def made(readers: Readers, *, version: int) -> Readers:
    """Three days in two files each, upserted twice."""
    begun = Written(readers.java, lambda: readers.spark, readers.table, Random(7), undated=0)
    readers.java.create(readers.table, COLUMNS, Layout(BY_DAY, version, ON_READ))
    begun.append(range(ROWS), files=6)
    begun.upserts(range(ROWS))
    begun.upserts(range(ROWS))
    readers.spark.attach(readers.table.warehouse)
    return readers


def persisted(table: Table) -> RunDocument:
    return night(table, Operation.PERSIST_DELETES)


def night(table: Table, operation: Operation, *outcomes: Outcome, **settings: Any) -> RunDocument:
    done = care_for(table, run_id=f"night {next(_NIGHTS)}", operation=operation, **settings)
    assert done.outcome in (outcomes or (Outcome.VERIFIED,)), done.reason
    return done


def cared(readers: Readers) -> None:
    """One day in a file of ours, two with deletes of ours."""
    persisted(readers.table)
    night(readers.table, Operation.OPTIMIZE, full=True, where=f"day = '{DAYS[0]}'")


def next_night(readers: Readers) -> None:
    """On top of whatever came after us."""
    lineage = readers.table.document()["format-version"] == 3
    before = readers.all_see(lineage=lineage)
    for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
        night(readers.table, operation, Outcome.VERIFIED, Outcome.UNCHANGED, full=True)
        assert readers.all_see(lineage=lineage) == before
    assert not readers.has_equality_deletes()


# What engines do


def java_upserts(to: Readers) -> None:
    goes_on = Written(to.java, lambda: to.spark, to.table, Random(8), undated=0)
    goes_on.upserts(range(ROWS))
    goes_on.upserts(range(ROWS))


def spark_on_read(to: Readers) -> None:
    to.spark.sql(
        merge(to.table, range(0, ROWS + 10, 4)),
        f"UPDATE {to.table.sql} SET shop = 8 WHERE id % 5 = 1",
        f"DELETE FROM {to.table.sql} WHERE id % 5 = 2",
    )


def spark_on_write(to: Readers) -> None:
    properties = dict.fromkeys(ON_READ, "copy-on-write")
    to.java.alter(to.table, {"change": "set_properties", "properties": properties})
    spark_on_read(to)


def spark_rewrites_all(to: Readers) -> None:
    called(to, "rewrite_data_files", {**ALL, "remove-dangling-deletes": "true"})


def spark_rewrites_positions(to: Readers) -> None:
    called(to, "rewrite_position_delete_files", ALL)


def spark_rewrites_manifests(to: Readers) -> None:
    called(to, "rewrite_manifests")


def java_compacts(to: Readers) -> None:
    to.java.commit_rewrite(to.table, to.java.begin_rewrite(to.table, options=ALL))


def schema_evolves(to: Readers) -> None:
    to.java.alter(
        to.table,
        {"change": "rename_column", "name": "name", "to": "label"},
        {"change": "drop_column", "name": "price"},
        {"change": "change_type", "name": "shop", "type": "long"},
        {"change": "add_column", "name": "price", "type": "string"},
    )
    to.spark.sql(
        f"UPDATE {to.table.sql} SET label = 'renamed', price = 'new', shop = 70000000000 WHERE id % 5 = 3",
        f"DELETE FROM {to.table.sql} WHERE label IS NULL",
    )
    changes = [("+U", [n, DAYS[n % 3], "label", None, None, n, "price"]) for n in range(0, ROWS, 7)]
    to.java.cdc(to.table, changes, keys=("id", "day"))


def partitions_evolve(to: Readers) -> None:
    to.java.alter(
        to.table,
        {"change": "remove_partition_field", "name": "day"},
        {"change": "add_partition_field", "column": "id", "transform": "bucket[2]"},
    )
    spark_on_read(to)
    java_upserts(to)


def third_version(to: Readers) -> None:
    """Position deletes of ours are live when vectors come."""
    to.java.alter(to.table, {"change": "set_properties", "properties": {"format-version": "3"}})
    java_upserts(to)
    spark_on_read(to)


def called(to: Readers, procedure: str, options: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    told = ", ".join(f"'{key}', '{value}'" for key, value in (options or {}).items())
    arguments = f"table => '{to.table.name}'" + (f", options => map({told})" if told else "")
    return to.spark.sql(f"CALL {to.table.warehouse.name}.system.{procedure}({arguments})").dicts()[0]


@dataclass(frozen=True)
class Story:
    goes_on: Callable[[Readers], None]
    versions: tuple[int, ...] = (2, 3)
    extended: bool = False


STORIES = (
    Story(java_upserts),
    Story(spark_on_read),
    Story(spark_on_write, extended=True),
    Story(spark_rewrites_all, extended=True),
    Story(spark_rewrites_positions, extended=True),
    Story(spark_rewrites_manifests, extended=True),
    Story(java_compacts, extended=True),
    Story(schema_evolves),
    Story(partitions_evolve),
    Story(third_version, (2,), extended=True),
)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("goes_on", "version"),
    [
        pytest.param(each.goes_on, v, id=f"{each.goes_on.__name__}-v{v}", marks=[pytest.mark.extended] * each.extended)
        for each in STORIES
        for v in each.versions
    ],
)
def test_engines_go_on_as_if_we_had_never_been(
    goes_on: Callable[[Readers], None], version: int, readers: Readers
) -> None:
    ours = made(readers, version=version)
    untouched = made(replace(readers, table=readers.table.warehouse.table("db.untouched")), version=version)
    cared(ours)
    for each in (ours, untouched):
        goes_on(each)
    assert ours.all_see() == untouched.java.read(untouched.table)
    next_night(ours)


def test_pyiceberg_appends_and_deletes(readers: Readers) -> None:
    """Of the second version, the newest that it writes; until deletes are persisted it cannot find the rows."""
    ours = made(readers, version=2)
    rows = Written(ours.java, lambda: ours.spark, ours.table, Random(9), undated=0)
    more = [rows.row(n) for n in range(100, 110)]
    cared(ours)
    before = ours.all_see().rows
    with pyiceberg_catalog(ours.table.warehouse) as catalog:
        table = catalog.load_table(ours.table.name)
        table.append(arrow(more).cast(table.schema().as_arrow()))
        with pytest.warns(UserWarning, match="falling back to copy-on-write"):
            table.delete("id >= 5 and id < 12")
    kept = {json_row for json_row in map(tuple, (*before, *more)) if not 5 <= json_row[0] < 12}
    assert set(ours.all_see().rows) == kept
    next_night(ours)


@pytest.mark.extended
@pytest.mark.parametrize("version", [2, 3])
def test_snapshots_expire_with_what_only_they_had_of_ours(version: int, readers: Readers) -> None:
    ours = made(readers, version=version)
    persisted(ours.table)
    deletes = {entry["file_path"] for entry in ours.java.entries(ours.table) if entry["content"] == 1}
    night(ours.table, Operation.OPTIMIZE, full=True)
    before = ours.all_see()
    name = ours.table.warehouse.name
    ours.spark.sql(
        f"CALL {name}.system.expire_snapshots(table => '{ours.table.name}', retain_last => 1,"
        " older_than => TIMESTAMP '2999-01-01 00:00:00')"
    )
    assert deletes and not any(Path(path.removeprefix("file:")).exists() for path in deletes)
    live = {path.removeprefix("file:").lstrip("/") for path in live_files(ours)}
    assert {path for path in contents(ours.table) if path.endswith((".parquet", ".puffin"))} == live
    assert ours.all_see() == before
    java_upserts(ours)
    next_night(ours)


@pytest.mark.parametrize("version", [2, 3])
def test_the_statement_that_our_report_prints_goes_back(version: int, readers: Readers) -> None:
    ours = made(readers, version=version)
    before, files = ours.all_see(), live_files(ours)
    done = persisted(ours.table)
    assert done.base_version is not None and live_files(ours) != files
    ours.spark.sql(opened(ours.table).commits.rollback(done.base_version))
    assert ours.table.document()["current-snapshot-id"] == done.base_version
    assert (ours.all_see(), live_files(ours)) == (before, files)
    next_night(ours)
    java_upserts(ours)
    next_night(ours)


def live_files(readers: Readers) -> set[str]:
    return {entry["file_path"] for entry in readers.java.entries(readers.table) if entry["status"] != 2}


@pytest.mark.parametrize("version", [2, 3])
def test_compaction_by_default_counts_deletes_once_they_are_persisted(version: int, readers: Readers) -> None:
    """delete-ratio-threshold is of deletes of a file, which deletes by key are not."""
    readers.java.create(readers.table, COLUMNS, Layout(format_version=version))
    begun = Written(readers.java, lambda: readers.spark, readers.table, Random(1), undated=0)
    begun.append(range(30))
    deletes = readers.java.equality_deletes(readers.table, [[n] for n in range(5, 15)], keys=("id",))
    readers.java.commit(readers.table, deletes)
    readers.spark.attach(readers.table.warehouse)
    before = readers.all_see()
    assert called(readers, "rewrite_data_files")["rewritten_data_files_count"] == 0
    persisted(readers.table)
    assert called(readers, "rewrite_data_files")["rewritten_data_files_count"] == 3
    assert readers.all_see() == before
    next_night(readers)


def test_streams_go_on_past_us_when_asked_to_skip_deletes(readers: Readers, tmp_path: Path) -> None:
    readers.java.create(readers.table, COLUMNS)
    begun = Written(readers.java, lambda: readers.spark, readers.table, Random(1), undated=0)
    begun.append(range(30))
    readers.java.commit(readers.table, readers.java.equality_deletes(readers.table, [[1]], keys=("id",)))
    readers.spark.attach(readers.table.warehouse)
    skipping = {"streaming-skip-delete-snapshots": "true"}
    seen = readers.spark.stream(readers.table, tmp_path / "sink", options=skipping)
    assert sorted(seen.column("id")) == list(range(30))
    persisted(readers.table)
    begun.append(range(30, 36))
    with pytest.raises(EngineError, match="Cannot process delete snapshot"):
        readers.spark.stream(readers.table, tmp_path / "sink")
    night(readers.table, Operation.OPTIMIZE, full=True)
    seen = readers.spark.stream(readers.table, tmp_path / "sink", options=skipping)
    assert sorted(seen.column("id")) == list(range(36))
