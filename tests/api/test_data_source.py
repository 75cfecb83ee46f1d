"""The data source in a Spark of its own workers: rows as `nightkeep.read` shows them, with filters pushed and not."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.drivers.lake_rows import rows_of
from tests.formats.paimon.gate.test_changes import with_options
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

import nightkeep
from nightkeep.api import data_source
from nightkeep.errors import UsageError
from nightkeep.reading import plan as planning

SAMPLES = Path(__file__).parents[2] / "samples"
PAIMON, DELTA = f"paimon:{SAMPLES}/paimon/shop.db", f"delta:{SAMPLES}/delta/shop.db"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
TABLES = (f"{PAIMON}/orders", f"{PAIMON}/customers", f"{PAIMON}/stock", f"{DELTA}/clicks", f"{DELTA}/readings")


@pytest.fixture
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    spark.dataSource.register(nightkeep.DataSource)
    yield spark
    spark.conf.unset(PUSHDOWN)


def loaded(spark: SparkSession, table: str, **options: object) -> DataFrame:
    return spark.read.format("nightkeep").options(**{name: str(value) for name, value in options.items()}).load(table)


def same(frame: DataFrame, wanted: pa.Table) -> bool:
    return bool(rows_of(frame.toArrow()).ordered().rows == rows_of(wanted).ordered().rows)


@pytest.mark.parametrize("table", some_extended(TABLES, keep=1))
def test_spark_shows_what_read_shows(table: str, registered: SparkSession) -> None:
    wanted = nightkeep.read(table).read_all()
    frame = loaded(registered, table)
    assert frame.columns == wanted.column_names
    assert same(frame, wanted)


def test_options_choose_version_view_columns_and_rows(registered: SparkSession) -> None:
    table = f"{PAIMON}/orders"
    for options in ({"version": 5}, {"view": "merge-on-read"}, {"columns": "order_id,amount", "where": "amount > 900"}):
        wanted = nightkeep.read(table, **options).read_all()  # type: ignore[arg-type]
        assert same(loaded(registered, table, **options), wanted), options


def test_changes_between_versions_are_those_of_read(registered: SparkSession, tmp_path: Path) -> None:
    table = with_options(
        Path(shutil.copytree(SAMPLES / "paimon/shop.db/stock", tmp_path / "stock")), {"changelog-producer": "lookup"}
    )
    newest = upgrade(table).committed_version
    assert newest is not None
    for kind, since in (("changelog", newest - 1), ("diff", 1)):
        options = {"incremental": kind, "since": since, "pushdown": "true"}
        wanted = nightkeep.read(f"paimon:{table}", incremental=kind, since=since).read_all()
        assert wanted.num_rows
        assert same(loaded(registered, f"paimon:{table}", **options), wanted), kind


CONDITIONS = (
    "order_id = 77",
    "order_id > 4700 AND status <> 'paid'",
    "dt = '2026-11-02' AND amount >= 10.5",
    "note IS NULL",
    "status IN ('paid', 'open')",
    "status LIKE 'p%' OR order_id < 3",
    "note IS NOT NULL AND note LIKE '%1%'",
    "updated_at < TIMESTAMP '2026-11-02 10:00:00'",
    "order_id % 2 = 0 AND dt <=> '2026-11-01'",
    "NOT amount < 500",
)


@pytest.fixture
def orders(registered: SparkSession) -> DataFrame:
    """The rows of a sample that Spark holds itself."""
    schema = loaded(registered, f"{PAIMON}/orders").schema
    return registered.createDataFrame(nightkeep.read(f"{PAIMON}/orders").read_all().to_pylist(), schema)


@pytest.mark.parametrize("pushed", some_extended(["true", "false"], keep=1))
def test_filters_find_the_same_rows_pushed_and_not(pushed: str, registered: SparkSession, orders: DataFrame) -> None:
    registered.conf.set(PUSHDOWN, pushed)
    found = [loaded(registered, f"{PAIMON}/orders", pushdown="true").filter(each) for each in CONDITIONS]
    numbered = [frame.select(F.lit(number).alias("number"), "*") for number, frame in enumerate(found)]
    wanted = [orders.filter(each).select(F.lit(number).alias("number"), "*") for number, each in enumerate(CONDITIONS)]
    ours, theirs = (reduce(DataFrame.unionAll, frames) for frames in (numbered, wanted))
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))


def test_a_filter_is_pushed_where_the_option_and_the_session_set_it(registered: SparkSession) -> None:
    def plan(option: str, session: str) -> str:
        registered.conf.set(PUSHDOWN, session)
        frame = loaded(registered, f"{DELTA}/clicks", pushdown=option).filter("day = DATE '2026-11-02'")
        return str(frame._jdf.queryExecution().executedPlan().toString())

    assert "Filter (" not in plan("true", "true")
    assert "Filter (" in plan("true", "false") and "Filter (" in plan("false", "true")


def test_one_frame_may_be_filtered_twice_unless_filters_are_pushed(registered: SparkSession) -> None:
    """Spark 4.1 keeps the splits of the first pushed filters with the DataFrame."""
    registered.conf.set(PUSHDOWN, "true")
    frame = loaded(registered, f"{DELTA}/clicks")
    days = (
        frame.filter("day = DATE '2026-11-02'").select("day").union(frame.filter("day <> '2026-11-02'").select("day"))
    )
    every = nightkeep.read(f"{DELTA}/clicks").read_all().num_rows
    assert (days.count(), frame.count()) == (every, every)


@pytest.mark.extended
def test_times_finer_than_sparks_are_cut_and_times_of_day_are_refused(registered: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="a time of day is no type of Spark's data sources"):
        _ = loaded(registered, f"{PAIMON}/positions").schema
    names = nightkeep.read(f"{PAIMON}/positions").schema
    plain = [field.name for field in names if not pa.types.is_time(field.type)]
    frame = loaded(registered, f"{PAIMON}/positions", columns=",".join(plain))
    assert frame.count() == nightkeep.read(f"{PAIMON}/positions").read_all().num_rows


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot": 3}, "option snapshot: expected some of path, columns"),
        ({"version": "newest"}, "version: expected a whole number, found 'newest'"),
        ({"view": "all"}, "view: expected one of raw"),
        ({"columns": "gone"}, "columns: expected some of"),
        ({"where": "gone = 1"}, "expected a column of the table"),
    ],
)
def test_what_is_wrong_with_options_is_stated(
    options: dict[str, object], message: str, registered: SparkSession
) -> None:
    with pytest.raises(PySparkException, match=message):
        _ = loaded(registered, f"{PAIMON}/orders", **options).schema
    with pytest.raises(UsageError, match=message):
        source = nightkeep.DataSource({"path": f"{PAIMON}/orders", **{k: str(v) for k, v in options.items()}})
        source.schema()


def test_a_path_is_needed() -> None:
    with pytest.raises(UsageError, match="path: expected the address of a table, found none"):
        nightkeep.DataSource({})


def test_partitions_pickle_with_all_that_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SPLIT_BYTES", 1_000)
    monkeypatch.setattr(planning, "OPEN_BYTES", 0)
    source = nightkeep.DataSource({"path": f"{PAIMON}/orders"})
    reader = source.reader(source.schema())
    assert (
        not hasattr(type(reader), "_tests") and type(reader).pushFilters is not data_source._PushingReader.pushFilters
    )
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    assert len(partitions) > 3
    assert sum(batch.num_rows for each in partitions for batch in reader.read(each)) == 4800
