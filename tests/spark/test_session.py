"""Items -> Spark tasks -> results, on a real session."""

import os
import sys
import threading
import zipimport
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from nightkeep.errors import CorruptMetadata, NightkeepError, RefusedTable, UsageError
from nightkeep.progress import Stage, in_stage, watching
from nightkeep.spark.engine import Engine, beside
from nightkeep.spark.package import package_zip
from nightkeep.spark.session import SparkMapper, spark_session, warm_up
from nightkeep.spark.session_start import beside_this


def test_results_come_back_in_the_order_of_the_items(spark: SparkSession) -> None:
    items = [{"n": n} for n in (5, 3, 8, 1, 9, 2)]
    assert SparkMapper(spark)(lambda item: item["n"] ** 2, items, label="square") == [25, 9, 64, 1, 81, 4]


def test_no_items_start_no_job(spark: SparkSession) -> None:
    assert SparkMapper(spark)(lambda item: item, [], label="nothing") == []


def test_every_item_is_a_task_of_its_own(spark: SparkSession) -> None:
    def task(item: int) -> tuple[int, int]:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        return context.partitionId(), context.taskAttemptId()

    found = SparkMapper(spark)(task, list(range(7)), label="where")
    assert [partition for partition, _ in found] == list(range(7))
    assert len({attempt for _, attempt in found}) == 7


@pytest.mark.parametrize(
    "failure",
    [UsageError("t: expected a, found b"), CorruptMetadata("f", "x", "y"), RefusedTable("t", "a feature", "do this")],
)
def test_a_failure_of_ours_is_raised_as_it_was_and_tried_once(
    spark: SparkSession, tmp_path: Path, failure: NightkeepError
) -> None:
    tries = str(tmp_path / "tries")

    def task(item: int) -> int:
        if item == 1:
            with open(tries, "a") as file:
                file.write("x")
            raise failure
        return item

    with pytest.raises(type(failure), match=str(failure)) as raised:
        SparkMapper(spark)(task, [0, 1, 2], label="fail")
    assert vars(raised.value) | {"__notes__": []} == vars(failure) | {"__notes__": []}
    assert "in task" in raised.value.__notes__[0]
    assert Path(tries).read_text() == "x"


def test_any_other_failure_is_tried_again(tmp_path: Path, spark: SparkSession) -> None:
    assert SparkMapper(spark)(_failing_once(tmp_path), [0, 1], label="flaky") == [0, 1]


def _failing_once(folder: Path) -> Callable[[int], int]:
    marker = str(folder / "tried")

    def task(item: int) -> int:
        if item == 1 and not os.path.exists(marker):
            open(marker, "x").close()
            raise RuntimeError("a lost connection")
        return item

    return task


def test_a_failure_that_stays_is_raised_as_sparks(spark: SparkSession) -> None:
    def task(item: int) -> int:
        raise RuntimeError("no such luck")

    with pytest.raises(PythonException, match="no such luck"):
        SparkMapper(spark)(task, [0], label="fail")


class _Counting:
    """Leaves a file where it is told once some tasks of a stage have ended, but not all."""

    def __init__(self, seen: Path) -> None:
        self._seen = seen
        self.stages = list[str]()

    def began(self, stage: Stage) -> None:
        self.stages.append(stage.name)

    def counted(self, stage: Stage, done: int, total: int) -> None:
        assert (stage.name, total) == ("rewrite", 4)
        if 0 < done < total:
            self._seen.touch()

    def ended(self, stage: Stage) -> None:
        self.stages.append(f"no {stage.name}")

    def noted(self, text: str) -> None:
        raise AssertionError(text)


def test_tasks_of_a_stage_are_counted_while_they_run(spark: SparkSession, tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def task(item: int) -> int:
        import time  # noqa: PLC0415

        # The last task ends when its forerunners' ends have been counted, or far too late.
        deadline = time.monotonic() + 30
        while item == 3 and not seen.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return item

    watcher = _Counting(seen)
    with watching(watcher), in_stage(Stage("t", "optimize", "rewrite")):
        assert SparkMapper(spark)(task, [0, 1, 2, 3], label="counting") == [0, 1, 2, 3]
    assert seen.exists() and watcher.stages == ["rewrite", "no rewrite"]


def test_workers_know_the_package_and_run_kernels_on_one_thread(spark: SparkSession) -> None:
    def task(item: int) -> tuple[str, str, str, str]:
        import nightkeep.tasks  # noqa: PLC0415

        meter = nightkeep.tasks.CostMeter()
        names = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS")
        return (meter.cost().executor, sys.executable, *(os.environ[name] for name in names))

    warm_up(spark)
    found = SparkMapper(spark)(task, [0, 1, 2, 3], label="look")
    assert {threads for _, _, *threads_ in found for threads in threads_} == {"1"}
    assert {python for _, python, *_ in found} == {sys.executable}
    assert len({executor for executor, *_ in found}) == 1


def test_workers_keep_the_memory_of_large_columns(spark: SparkSession) -> None:
    def pool(item: int) -> str:
        import pyarrow  # noqa: PLC0415

        return str(pyarrow.default_memory_pool().backend_name)

    assert SparkMapper(spark)(pool, [0], label="look") == ["system"]


def test_a_session_that_is_there_is_used_and_stays(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with spark_session(app_name="other", task_memory_bytes=1 << 30) as session:
        assert session is spark
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.range(3).count() == 3


def test_a_session_of_another_thread_is_used_and_stays(spark: SparkSession) -> None:
    """A thread has no active session before it makes a frame."""

    def used() -> SparkSession:
        assert SparkSession.getActiveSession() is None
        with spark_session(app_name="other", task_memory_bytes=1 << 30) as session:
            return session

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(used).result().sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3


def test_a_session_that_is_given_is_used_and_has_its_settings_back(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with spark_session(app_name="other", task_memory_bytes=1 << 30, given=spark) as session:
        assert session is spark
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert spark.range(3).count() == 3
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_session_beside_another_has_settings_of_its_own(spark: SparkSession) -> None:
    engine = Engine(master="local[2]", task_memory_bytes=1 << 30, spark=spark)
    other = beside(engine)
    assert other.spark() is other.spark() is not spark
    assert other.spark().sparkContext is spark.sparkContext
    other.spark().conf.set("spark.sql.shuffle.partitions", "7")
    assert spark.conf.get("spark.sql.shuffle.partitions") != "7"
    assert other.spark().conf.get("spark.sql.caseSensitive") == "true"


def test_modules_are_imported_in_a_thread_that_ends_with_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_meanwhile.py").write_text("import threading\nBY = threading.current_thread().name\n")
    monkeypatch.syspath_prepend(tmp_path)
    # Whoever needs the missing one gets the error.
    with beside_this(lambda: [*map(import_module, ["imported_meanwhile", "no_such_module"])]):
        pass
    assert sys.modules.pop("imported_meanwhile").BY == "nightkeep-imports"
    assert "nightkeep-imports" not in [thread.name for thread in threading.enumerate()]


def test_the_zip_for_executors_holds_an_importable_package(tmp_path: Path) -> None:
    archive = tmp_path / "nightkeep.zip"
    archive.write_bytes(package_zip())
    importer = zipimport.zipimporter(str(archive))
    assert importer.find_spec("nightkeep") is not None
    assert b"<" in importer.get_data("nightkeep/pages/templates/page.html.j2")
    assert "class SparkMapper" in (importer.get_source("nightkeep/spark/session") or "")
