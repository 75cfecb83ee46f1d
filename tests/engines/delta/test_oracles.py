"""What delta-spark, delta-rs and DuckDB read of tables that we laid anew: the rows that delta-spark read before."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import files, opened, optimize
from tests.formats.delta.vacuum import vacuum
from tests.support.extended import some_extended

from nightkeep.formats.delta.metadata.leaf_columns import indexed_leaves
from nightkeep.model import Operation, Outcome

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
SAMPLES = Path(__file__).parents[3] / "samples/delta/shop.db"
LEFT_ALONE = {"clustered", "stats_no_columns"}
"""One file that delta-spark clustered, and one without a column to cluster by."""
CANNOT_READ = {
    # Partition columns with mapped names are null to it.
    "mapping_id": ("duckdb_read",),
    "mapping_name": ("duckdb_read",),
    "protocol_checks": ("delta_rs_read",),
    "type_widening": ("delta_rs_read",),
}
FILTERS = 20


def ordered_columns(table: Path) -> list[str]:
    """Columns that may be clustered by, nested ones among them."""
    schema = opened(table).snapshot().schema
    return [".".join(leaf.path) for leaf in indexed_leaves(schema) if leaf.ordered and "." not in "".join(leaf.path)]


def laid_anew(table: Path) -> Outcome:
    """Every file clustered along Hilbert by up to two columns; packed where none has statistics."""
    columns = ordered_columns(table)[:2]
    settings: dict[str, Any] = {"clustering": {"hilbert": columns}} if columns else {}
    document = optimize(table, full=True, **settings)
    assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason
    return document.outcome


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name", some_extended(sorted(path.parent.name for path in GOLDEN.glob("*/rows.json")), keep=14)
)
def test_every_kind_of_table_reads_as_before(name: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / name / "table", tmp_path / "table"))
    expected = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text()))
    has_work = bool(expected.rows) and name not in LEFT_ALONE
    assert laid_anew(table) is (Outcome.VERIFIED if has_work else Outcome.UNCHANGED)
    ours = {file for file in files(table) if "nk-" in file and file.endswith(".parquet")}
    assert not has_work or ours == {file.name for unit in opened(table).snapshot().units for file in unit.files}
    assert delta_spark.read(table) == expected
    for read in (lakes.delta_rs_read, lakes.duckdb_read):
        if read.__name__ not in CANNOT_READ.get(name, ()):
            assert read(table) == expected, read


def test_what_an_engine_cannot_read_of_ours_it_cannot_read_of_delta_spark(lakes: Lakes) -> None:
    for name, reads in CANNOT_READ.items():
        expected = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text()))
        for read in reads:
            try:
                assert getattr(lakes, read)(GOLDEN / name / "table") != expected
            except EngineError:
                continue


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["row_tracking", "row_tracking_backfilled"])
def test_rows_keep_their_ids(name: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / name / "table", tmp_path / "table"))
    columns = ("id", "_metadata.row_id", "_metadata.row_commit_version")
    expected = Rows.of(json.loads((GOLDEN / name / "row_ids.json").read_text()))
    assert laid_anew(table) is Outcome.VERIFIED
    assert delta_spark.read(table, columns=columns) == expected


@pytest.mark.extended
@pytest.mark.parametrize(("name", "columns"), [("clicks", ()), ("readings", ("device_id", "ts"))])
def test_random_filters_find_the_same_rows(
    name: str, columns: tuple[str, ...], delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    """Files are skipped by statistics of ours: some filter must open fewer files than there are."""
    table = Path(shutil.copytree(SAMPLES / name, tmp_path / name))
    before = filtered(delta_spark, table, Random(name))
    settings: dict[str, Any] = {"clustering": {"zorder": list(columns)}} if columns else {}
    document = optimize(table, full=True, target_size="16KB", min_file_size="1KB", **settings)
    assert document.outcome is Outcome.VERIFIED, document.reason
    every, skips = len(delta_spark.files(table)), False
    for (where, rows), by_spark in zip(before.items(), delta_spark.find(table, list(before)), strict=True):
        assert by_spark == rows, where
        for read in (lakes.delta_rs_read, lakes.duckdb_read):
            assert read(table, where=where) == rows, (where, read)
        skips = skips or len(delta_spark.files(table, where=where)) < every
    assert skips
    assert sum(bool(rows.rows) for rows in before.values()) > FILTERS / 2


def filtered(delta_spark: DeltaSpark, table: Path, random: Random) -> dict[str, Rows]:
    """Random conditions and their rows, by one query that skips nothing."""
    conditions = list(filters(delta_spark.read(table), random))
    found = delta_spark.read(table, columns=("*", *(f"({text}) AS f{n}" for n, text in enumerate(conditions))))
    width = len(found.columns) - len(conditions)
    kept = {text: [row[:width] for row in found.rows if row[width + n]] for n, text in enumerate(conditions)}
    head = (found.columns[:width], found.types[:width])
    return {text: Rows(*head, tuple(rows)).ordered() for text, rows in kept.items()}


def filters(rows: Rows, random: Random) -> Iterator[str]:
    """Comparisons with values that the table holds, of whole numbers, texts and days."""
    kinds = {"int", "bigint", "string", "date", "smallint"}
    columns = [name for name, kind in zip(rows.columns, rows.types, strict=True) if kind in kinds]
    for _ in range(FILTERS):
        some = [_condition(rows, random.choice(columns), random) for _ in range(random.choice((1, 1, 2)))]
        yield random.choice((" AND ", " OR ")).join(some)


def _condition(rows: Rows, column: str, random: Random) -> str:
    value = random.choice(rows.column(column))
    if value is None:
        return f"{column} IS NULL"
    kind = rows.types[rows.columns.index(column)]
    quoted = str(value).replace("'", "''")
    literal = f"'{quoted}'" if kind == "string" else f"DATE '{value}'" if kind == "date" else str(value)
    return f"{column} {random.choice(('=', '<', '<=', '>', '>=', '<>'))} {literal}"


@pytest.mark.extended
def test_vectors_laid_anew_read_alike_and_survive_a_vacuum(
    delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    """They lie in a folder of the run's, which a descriptor names as a random prefix."""
    made = HandMade(tmp_path / "events")
    for start in (0, 100, 200):
        made.append("2026-11-01", range(start, start + 100))
        made.delete("2026-11-01", range(start + 10, start + 20))
    rows = delta_spark.read(made.folder)
    document = optimize(made.folder, operation=Operation.PERSIST_DELETES, full=True)
    assert document.outcome is Outcome.VERIFIED, document.reason
    ours = [name for name in files(made.folder) if name.endswith(".bin") and "nk-" in name]
    assert len(ours) == 1
    history = delta_spark.sql(f"DESCRIBE HISTORY {named(made.folder)} LIMIT 1").dicts()[0]
    assert history["operation"] == "PERSIST DELETES"
    assert dict(history["operationMetrics"])["numDeletionVectorsAdded"] == "3"
    vacuum(delta_spark, made.folder)
    assert [name for name in files(made.folder) if name.endswith(".bin")] == ours
    assert delta_spark.read(made.folder) == rows
    assert lakes.delta_rs_read(made.folder) == lakes.duckdb_read(made.folder) == rows
    delta_spark.sql(f"DELETE FROM {named(made.folder)} WHERE id = 50")
    assert len(lakes.duckdb_read(made.folder).rows) == len(delta_spark.read(made.folder).rows) == 269
    assert optimize(made.folder, full=True).outcome is Outcome.VERIFIED
    assert len(delta_spark.read(made.folder).rows) == 269


def test_the_vector_of_a_lone_file_is_purged(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    """delta-spark and delta-rs leave it: a bin of one file is none of theirs (Trino #29041)."""
    made = HandMade(tmp_path / "events")
    made.append("2026-11-01", range(100))
    made.delete("2026-11-01", range(33))
    rows = delta_spark.read(made.folder)
    delta_spark.sql(f"OPTIMIZE {named(made.folder)}")
    lakes.delta_rs_optimize(made.folder)
    assert any("deletionVector" in add for add in made.live().values())
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    assert not any("deletionVector" in add for add in made.live().values())
    assert delta_spark.read(made.folder) == lakes.delta_rs_read(made.folder) == lakes.duckdb_read(made.folder) == rows


@pytest.mark.few(1)
@pytest.mark.parametrize("writer", ["delta-spark", "delta-rs"])
def test_paths_that_each_engine_escapes_in_its_own_way(
    writer: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    """`a b/0` is a%20b%252F0 to one and a%2520b%252F0 to the other; a remove that misses doubles the rows."""
    table = tmp_path / "t"
    values = ["a b/0", "50%", "x=y:z", "it's", None]
    for start in (0, 5):
        batch = pa.table({"id": pa.array(range(start, start + 5), pa.int64()), "p": values})
        if writer == "delta-rs":
            lakes.delta_rs_append(table, batch, partition_by=["p"])
        else:
            texts = ["NULL" if value is None else '"' + value + '"' for value in values]
            rows = ", ".join(f"({start + n}L, {text})" for n, text in enumerate(texts))
            statement = f"CREATE TABLE IF NOT EXISTS {named(table)} (id LONG, p STRING) USING delta PARTITIONED BY (p)"
            delta_spark.sql(statement, f"INSERT INTO {named(table)} VALUES {rows}")
    rows = delta_spark.read(table)
    assert len(rows.rows) == 10
    document = optimize(table)
    assert (document.outcome, len(document.units)) == (Outcome.VERIFIED, 5), document.reason
    assert delta_spark.read(table) == lakes.delta_rs_read(table) == lakes.duckdb_read(table) == rows
    assert len(delta_spark.files(table)) == 5
    assert len(delta_spark.read(table, where="p = 'a b/0'").rows) == 2
    if writer == "delta-rs":
        lakes.delta_rs_append(table, pa.table({"id": pa.array([99], pa.int64()), "p": ["a b/0"]}))
        lakes.delta_rs_optimize(table)
        assert len(delta_spark.read(table).rows) == 11


def test_a_change_feed_shows_nothing_of_ours(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / "change_feed" / "table", tmp_path / "table"))
    assert laid_anew(table) is Outcome.VERIFIED
    version = opened(table).snapshot().version
    changes = delta_spark.sql(f"SELECT * FROM table_changes_by_path('{table}', {version})")
    assert not changes.rows
    assert not lakes.load_cdf(table, starting=version).rows
