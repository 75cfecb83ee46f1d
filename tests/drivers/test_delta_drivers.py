"""Three readers of Delta agree on odd values, vectors and partitions: what other tests are judged by is judged here."""

import contextlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from samples.make_delta_samples import DELTA_SAMPLES
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, latest_version, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows, rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.support.extended import some_extended

pytestmark = pytest.mark.extended

VECTORS = {"delta.enableDeletionVectors": "true"}
EVERY_TYPE = """
    id INT, flag BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, single FLOAT, real DOUBLE,
    price DECIMAL(10, 2), precise DECIMAL(38, 10), text STRING, raw BINARY, day DATE, at TIMESTAMP,
    local_at TIMESTAMP_NTZ, place STRUCT<x: INT, name: STRING, sub: STRUCT<at: TIMESTAMP>>,
    tags ARRAY<STRING>, counts MAP<STRING, INT>"""
ODD_ROWS = (
    "(0" + ", NULL" * 16 + ")",
    """(1, true, -128Y, -32768S, -9223372036854775808L, FLOAT('NaN'), DOUBLE('NaN'), -99999999.99,
        -9999999999999999999999999999.0123456789, '', X'', DATE'1969-12-31', TIMESTAMP'1969-12-31T23:59:59.999999Z',
        TIMESTAMP_NTZ'1969-12-31T23:59:59.999999',
        named_struct('x', NULL, 'name', NULL, 'sub', NULL), array(), map())""",
    """(2, false, 127Y, 32767S, 9223372036854775807L, FLOAT('-0.0'), DOUBLE('-0.0'), 0.00, 0.0000000001,
        'na\\u00efve \\u4e2d\\uD83D\\uDE00 a%20b', X'00ff7f', DATE'9999-12-31', TIMESTAMP'2026-11-01T00:00:00.000001Z',
        TIMESTAMP_NTZ'2026-11-01T00:00:00.000001',
        named_struct('x', 1, 'name', 'n', 'sub', named_struct('at', TIMESTAMP'2000-01-01T00:00:00Z')),
        array('a', NULL, ''), map('b', 2, 'a', NULL))""",
    """(3, true, 0Y, 0S, 0L, FLOAT('Infinity'), DOUBLE('-Infinity'), 1.10, 1.1, 'it''s', X'27', DATE'0001-01-01',
        TIMESTAMP'2026-11-01T12:30:00.123456Z', TIMESTAMP_NTZ'0001-01-01T00:00:00',
        named_struct('x', 2, 'name', '', 'sub',
        named_struct('at', NULL)), array(array('z')[0]), map('', 0))""",
)
ODD_PARTITIONS = ("a b/0", "50%", "x=y:z", "na\u00efve \u4e2d", "a'b\"c", None)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    # No percent sign: delta-rs decodes the table's own path twice.
    # No percent sign: deltalake 1.6.6 decodes the table's own path twice.
    return tmp_path / "a b'c" / "t"


def every_reader(delta_spark: DeltaSpark, lakes: Lakes, table: Path, where: str | None = None) -> Rows:
    """The rows all three agree on."""
    rows = delta_spark.read(table, where=where)
    assert lakes.delta_rs_read(table, where=where) == rows
    assert lakes.duckdb_read(table, where=where) == rows
    return rows


def insert(rows: tuple[str, ...], table: Path) -> str:
    return f"INSERT INTO {named(table)} VALUES {', '.join(rows)}"


# Rows


@pytest.mark.extended
def test_every_type_reads_alike(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    delta_spark.sql(f"CREATE TABLE {named(table)} ({EVERY_TYPE}) USING delta", insert(ODD_ROWS, table))
    rows = every_reader(delta_spark, lakes, table)
    nulls, least, most, other = rows.dicts()
    assert set(nulls.values()) == {0, None}
    assert (least["single"], least["real"], least["raw"], least["tags"]) == ("NaN", "NaN", "", [])
    assert (least["day"], least["at"]) == ("1969-12-31", "1969-12-31T23:59:59.999999Z")
    assert least["precise"] == "-9999999999999999999999999999.0123456789"
    assert (most["single"], most["real"], most["big"]) == ("-0.0", "-0.0", 2**63 - 1)
    assert (most["price"], most["raw"], most["text"]) == ("0.00", "00ff7f", "na\u00efve \u4e2d\U0001f600 a%20b")
    assert most["local_at"] == "2026-11-01T00:00:00.000001"
    assert most["place"] == {"x": 1, "name": "n", "sub": {"at": "2000-01-01T00:00:00.000000Z"}}
    assert (most["tags"], most["counts"]) == (["a", None, ""], [["a", None], ["b", 2]])
    assert (other["single"], other["real"], other["day"]) == ("Infinity", "-Infinity", "0001-01-01")
    assert rows.types[11:14] == ("date", "timestamp", "timestamp_ntz")


def test_rows_of_one_engine_differ_where_values_do(delta_spark: DeltaSpark) -> None:
    """What the canonical form must keep apart, Python's == does not."""
    pairs = (("DOUBLE('NaN')", "DOUBLE(NULL)"), ("DOUBLE('-0.0')", "0.0D"), ("''", "NULL"), ("1.10", "1.1"))
    for one, other in (*pairs, ("TIMESTAMP'2026-11-01'", "TIMESTAMP_NTZ'2026-11-01'"), ("X'31'", "'1'")):
        assert delta_spark.sql(f"SELECT {one} AS v") != delta_spark.sql(f"SELECT {other} AS v")


def test_years_beyond_pythons_are_read(delta_spark: DeltaSpark) -> None:
    days = "DATE'+12345-06-07' AS day, DATE'-0044-03-15' AS ides, TIMESTAMP_NTZ'+12345-06-07T08:09:10' AS at"
    assert delta_spark.sql(f"SELECT {days}").rows == (("12345-06-07", "-044-03-15", "12345-06-07T08:09:10.000000"),)


@pytest.mark.extended
def test_vectors_are_applied_alike(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    delta_spark.write(table, Generated(300, ("id", "id % 10 AS k")), Writing(files=3, properties=VECTORS))
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE k = 3 OR id < 20", f"DELETE FROM {named(table)} WHERE k = 4")
    rows = every_reader(delta_spark, lakes, table)
    assert set(rows.column("id")) == {n for n in range(20, 300) if n % 10 not in (3, 4)}
    assert len(every_reader(delta_spark, lakes, table, "id >= 100 AND k < 6").rows) == 80
    assert len(lakes.delta_rs_read(table, version=1).rows) == len(delta_spark.read(table, version=1).rows) == 252


def test_odd_partition_values_read_alike(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    literals = ["NULL" if value is None else '"' + value.replace('"', '\\"') + '"' for value in ODD_PARTITIONS]
    rows = tuple(f"({n}, {text}, {n})" for n, text in enumerate(literals))
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id INT, p STRING, q INT) USING delta PARTITIONED BY (p, q)", insert(rows, table)
    )
    assert every_reader(delta_spark, lakes, table).column("p") == ODD_PARTITIONS
    assert every_reader(delta_spark, lakes, table, "p = 'a b/0'").column("id") == (0,)
    assert every_reader(delta_spark, lakes, table, "p IS NULL").column("id") == (5,)


def test_an_empty_text_in_a_partition_column_is_null_to_all(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    statement = f"CREATE TABLE {named(table)} (id INT, p STRING) USING delta PARTITIONED BY (p)"
    delta_spark.sql(statement, insert(("(1, '')", "(2, 'x')"), table))
    assert every_reader(delta_spark, lakes, table).column("p") == (None, "x")


# Tables made once by delta-spark: what it read then, the two others read now

GOLDEN = Path(__file__).parents[1] / "golden" / "delta"
READABLE = sorted(file.parent for file in GOLDEN.glob("*/rows.json"))
REFUSED_BY_DELTA_RS = {"protocol_checks": "VacuumProtocolCheck", "type_widening": "TypeWidening"}
RENAMED_PARTITIONS = {"mapping_id", "mapping_name"}


def golden_rows(golden: Path) -> Rows:
    return Rows.of(json.loads((golden / "rows.json").read_text()))


@pytest.mark.parametrize("golden", READABLE, ids=lambda path: path.name)
def test_delta_rs_reads_what_spark_wrote(lakes: Lakes, golden: Path) -> None:
    if golden.name in REFUSED_BY_DELTA_RS:
        with pytest.raises(EngineError, match=REFUSED_BY_DELTA_RS[golden.name]):
            lakes.delta_rs_read(golden / "table")
    else:
        assert lakes.delta_rs_read(golden / "table") == golden_rows(golden)


@pytest.mark.parametrize("golden", READABLE, ids=lambda path: path.name)
def test_duckdb_reads_what_spark_wrote(lakes: Lakes, golden: Path) -> None:
    rows = lakes.duckdb_read(golden / "table")
    if golden.name in RENAMED_PARTITIONS:
        assert set(rows.column("part")) == {None}, "DuckDB finds no value of a partition column that was renamed"
        columns = [f'"{name}"' for name in rows.columns if name != "part"]
        wanted = golden_rows(golden)
        assert lakes.duckdb_read(golden / "table", columns=columns) == without(wanted, "part")
    else:
        assert rows == golden_rows(golden)


def without(rows: Rows, column: str) -> Rows:
    kept = [at for at, name in enumerate(rows.columns) if name != column]
    columns, types = (tuple(values[at] for at in kept) for values in (rows.columns, rows.types))
    return Rows(columns, types, tuple(tuple(row[at] for at in kept) for row in rows.rows)).ordered()


def test_golden_tables_hold_what_they_are_for() -> None:
    """The engine may stop writing what a test of ours relies on when the tables are made again."""
    logs = {path.name: path / "table" / "_delta_log" for path in READABLE}
    written = {name: "".join(file.read_text() for file in sorted(log.glob("*.json"))) for name, log in logs.items()}
    assert len(list(logs["checkpoint_v1_parts"].glob("*.checkpoint.*.parquet"))) > 1
    for name in ("checkpoint_v2_json", "checkpoint_v2_parquet"):
        assert len(list((logs[name] / "_sidecars").iterdir())) > 1
    assert len(list(logs["checkpoint_v2_json"].glob("*.checkpoint.*.json"))) == 1
    assert '"storageType":"i"' in written["inline_vector"]
    assert len(set(re.findall('"offset":(\\d+)', written["vectors"]))) > 2
    assert "ZCUBE_ID" in written["clustered"]
    assert "VACUUM END" in written["vacuum"] and "REORG" in written["reorg_purge"]
    assert not [file for path in READABLE for file in path.rglob(".*.crc")]


# Samples

SAMPLES = Path(__file__).parents[2] / "samples" / "delta" / "shop.db"


class Recorder:
    """In Spark's place: keeps what a recipe would write."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def write(self, _table: Path, rows: pa.Table, _writing: Writing | None = None) -> None:
        self.tables.append(rows)

    def sql(self, *_statements: str) -> None:
        """What was deleted or renamed is in later versions."""

    def configured(self, _conf: dict[str, str]) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()


@pytest.mark.parametrize("sample", DELTA_SAMPLES, ids=lambda sample: str(sample.__name__))
def test_the_recipe_makes_the_rows_of_a_sample(sample: Callable[[Any, Path], None], lakes: Lakes) -> None:
    recorder = Recorder()
    sample(recorder, SAMPLES / sample.__name__)
    last = len(recorder.tables) - 1
    made = rows_of(pa.concat_tables(recorder.tables)).ordered()
    assert lakes.delta_rs_read(SAMPLES / sample.__name__, version=last) == made


@pytest.mark.parametrize(
    ("name", "rows"), some_extended([("clicks", 3689), ("readings", 7200), ("accounts", 500)], keep=1)
)
def test_every_engine_reads_a_sample_alike(
    name: str, rows: int, delta_spark: DeltaSpark, lakes: Lakes, table: Path
) -> None:
    shutil.copytree(SAMPLES / name, table)
    assert len(every_reader(delta_spark, lakes, table).rows) == rows


def test_clicks_has_a_day_that_vectors_hide_and_a_lone_file_with_a_vector(lakes: Lakes) -> None:
    log = SAMPLES / "clicks" / "_delta_log"
    lines = [line for file in sorted(log.glob("[0-9]*.json")) for line in file.read_text().splitlines()]
    adds = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
    live = {add["path"]: add for add in adds}
    files = Counter(add["partitionValues"]["day"] for add in live.values())
    assert files == {f"2026-11-0{day + 1}": count for day, count in enumerate((10, 10, 10, 10, 1, 2))}
    hidden: Counter[str] = Counter()
    for add in live.values():
        hidden[add["partitionValues"]["day"]] += add["deletionVector"]["cardinality"] if "deletionVector" in add else 0
    assert hidden["2026-11-06"] == 300 and 40 < hidden["2026-11-05"] < 75 and min(hidden.values()) > 0
    assert not lakes.duckdb_read(SAMPLES / "clicks", where="day = '2026-11-06'").rows


def test_samples_are_small_and_without_checksums() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_200_000
    assert not [path for path in files if path.suffix == ".crc"]


# Verbs


def test_a_filtered_read_reports_its_files_and_row_ids(delta_spark: DeltaSpark, table: Path) -> None:
    writing = Writing(files=4, partition_by=("day",), properties={"delta.enableRowTracking": "true"})
    delta_spark.write(table, Generated(400, ("id", "id % 2 AS day", "'a b' || id % 2 AS place")), writing)
    assert len(delta_spark.files(table)) == 8
    (file,) = delta_spark.files(table, where="id = 7 AND day = 1")
    assert file.startswith("day=1/part-") and (table / file).exists()
    found = delta_spark.read(table, where="id < 4", columns=("id", "_metadata.row_id"))
    assert found.columns == ("id", "row_id") and len(set(found.column("row_id"))) == 4


def test_files_have_their_names_on_disk(delta_spark: DeltaSpark, table: Path) -> None:
    delta_spark.write(table, Generated(2, ("id", "'a b/' || id AS p")), Writing(partition_by=("p",)))
    found = delta_spark.files(table)
    assert [file.split("/")[0] for file in found] == ["p=a b%2F0", "p=a b%2F1"]
    assert all((table / file).exists() for file in found)


def test_spark_names_what_it_refuses(delta_spark: DeltaSpark, table: Path) -> None:
    delta_spark.write(table, Generated(3, ("id",)))
    with pytest.raises(EngineError, match="non-partition column 'id'") as caught:
        delta_spark.sql(f"OPTIMIZE {named(table)} WHERE id = 1")
    assert caught.value.condition == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    assert caught.value.kind == "org.apache.spark.sql.delta.DeltaAnalysisException"


def test_a_statement_is_held_before_its_commit(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    """delta-rs deletes a row of the file that the held DELETE marks: Spark finds the conflict when it goes on."""
    delta_spark.write(table, Generated(10, ("id",)))
    with delta_spark.held(f"DELETE FROM {named(table)} WHERE id = 3") as running:
        assert latest_version(table) == 0 and not running.done()
        lakes.delta_rs_delete(table, "id = 5")
    with pytest.raises(EngineError) as caught:
        running.result()
    assert caught.value.condition.startswith("DELTA_CONCURRENT_")
    with delta_spark.held(f"DELETE FROM {named(table)} WHERE id = 3") as running:
        assert latest_version(table) == 1
    assert running.result().rows == ((1,),)
    assert set(every_reader(delta_spark, lakes, table).column("id")) == set(range(10)) - {3, 5}


def test_a_statement_that_commits_nothing_cannot_be_held(delta_spark: DeltaSpark, table: Path) -> None:
    with pytest.raises(AssertionError, match="expected a commit"), delta_spark.held("SELECT 1"):
        pass
    assert delta_spark.write(table, Generated(1, ("id",))) == 0


def test_settings_last_as_long_as_they_are_wanted(delta_spark: DeltaSpark, table: Path) -> None:
    setting = "spark.databricks.delta.stats.collect"
    for collected in (False, True):
        with delta_spark.configured({setting: str(collected).lower()}):
            version = delta_spark.write(table, Generated(3, ("id",)))
        assert ("stats" in (table / "_delta_log" / f"{version:020d}.json").read_text()) == collected
    assert delta_spark.set({setting: None}) == {setting: None}


def test_an_arrow_table_and_its_file_are_written(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int16()), "at": pa.array([0, None], pa.timestamp("us"))})
    assert delta_spark.write(table, rows, Writing(properties={"delta.checkpointInterval": "100"})) == 0
    assert delta_spark.write(table, rows) == latest_version(table) == 1
    delta_spark.checkpoint(table)
    assert (table / "_delta_log" / "00000000000000000001.checkpoint.parquet").exists()
    found = every_reader(delta_spark, lakes, table)
    assert found.types == ("smallint", "timestamp_ntz")
    assert found.rows == ((1, "1970-01-01T00:00:00.000000"),) * 2 + ((2, None),) * 2


def test_delta_rs_writes_what_the_others_read(delta_spark: DeltaSpark, lakes: Lakes, table: Path) -> None:
    rows = pa.table({"id": range(100), "p": ["a b/0", "c"] * 50})
    lakes.delta_rs_append(table, rows, partition_by=["p"], properties={"delta.enableChangeDataFeed": "true"})
    lakes.delta_rs_append(table, rows)
    assert lakes.delta_rs_delete(table, "id = 5")["num_deleted_rows"] == 2
    assert lakes.load_cdf(table, starting=2).column("_change_type") == ("delete",) * 2
    assert lakes.delta_rs_optimize(table)["numFilesRemoved"] > 0
    assert lakes.delta_rs_z_order(table, ["id"])["numFilesAdded"] == 2
    lakes.delta_rs_checkpoint(table)
    assert [entry["operation"] for entry in lakes.delta_rs_history(table)][:2] == ["OPTIMIZE", "OPTIMIZE"]
    assert len(every_reader(delta_spark, lakes, table).rows) == 198
    gone = lakes.delta_rs_vacuum(table, retention_hours=0)
    assert gone and lakes.delta_rs_vacuum(table, retention_hours=0, dry_run=False) == gone
    assert len(every_reader(delta_spark, lakes, table).rows) == 198


def test_two_stale_handles_of_delta_rs_double_the_table(lakes: Lakes, table: Path) -> None:
    """The race that ours must not lose: delta-rs lets both of two concurrent OPTIMIZE commit."""
    rows = pa.table({"id": [1, 2]})
    for _ in range(4):
        lakes.delta_rs_append(table, rows)
    one, other = lakes.open(table), lakes.open(table, version=3)
    assert one.version == other.version == 3
    lakes.delta_rs_optimize(one)
    assert len(lakes.delta_rs_read(other).rows) == len(lakes.delta_rs_read(table).rows) == 8
    lakes.delta_rs_optimize(other)
    assert len(lakes.delta_rs_read(table).rows) == 16


def test_delta_rs_names_what_it_refuses(lakes: Lakes, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        lakes.delta_rs_read(tmp_path)
    assert caught.value.kind == "TableNotFoundError"
    with pytest.raises(EngineError) as caught:
        lakes.duckdb_read(tmp_path)
    assert "delta" in caught.value.message.lower()
