"""Failures that really happen: each ends in one sentence that names its cause and what to do."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession

from nightkeep.admission.order import Order
from nightkeep.causes import failure_text
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

pytestmark = pytest.mark.slow

CLICKS = Path(__file__).parents[2] / "samples/delta/shop.db/clicks"
NOBODY = 65_534


def optimized(table: Path) -> RunDocument:
    policy = EffectivePolicy(Address("delta", str(table), "clicks"), Settings(), {})
    order = Order(Operation.OPTIMIZE, "night", str(table.parent / "reports"))
    return run_operation(policy, order, mapper=lambda: inline)


def is_sentence(text: str) -> bool:
    return "\n" not in text and "Traceback" not in text and "\tat " not in text and len(text) < 500


def test_a_worker_that_is_killed(spark: SparkSession) -> None:
    rows = spark.sparkContext.parallelize([9], 1)
    with pytest.raises(Exception, match="worker") as raised:
        rows.map(lambda signal: os.kill(os.getpid(), signal)).collect()
    told = failure_text(raised.value)
    assert told.startswith("SparkException: Python worker exited unexpectedly") and "; a worker ended" in told, told
    assert is_sentence(told)


def test_a_heap_that_is_full(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="OutOfMemoryError") as raised:
        spark.sparkContext._jvm.java.util.ArrayList(2**31 - 1)  # type: ignore[union-attr]
    told = failure_text(raised.value)
    assert told.startswith("OutOfMemoryError: ") and "the heap is full: raise" in told and is_sentence(told)


def test_an_executor_that_is_killed() -> None:
    program = dedent("""
        import os, sys, time
        from pathlib import Path
        from pyspark.sql import SparkSession
        from nightkeep.causes import failure_text

        def kill_executor(number):
            process = os.getpid()
            while b"CoarseGrained" not in Path(f"/proc/{process}/cmdline").read_bytes():
                process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(process, 9)
            time.sleep(60)

        builder = SparkSession.builder.master("local-cluster[1,1,512]").config("spark.executor.memory", "512m")
        spark = builder.config("spark.ui.enabled", "false").config("spark.task.maxFailures", "1").getOrCreate()
        try:
            spark.sparkContext.parallelize([1], 1).map(kill_executor).collect()
        except Exception as failure:
            print("SENTENCE", failure_text(failure).replace("\\n", "LINE"))
    """)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    told = ended.stdout.partition("SENTENCE ")[2].strip()
    assert "code 137; it was killed" in told and "spark.executor.memoryOverhead" in told and "LINE" not in told


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    table = shutil.copytree(CLICKS, tmp_path / "clicks")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
    try:
        document = optimized(table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    reason = str(document.reason)
    assert document.outcome is Outcome.FAILED and is_sentence(reason), reason
    assert "File too large" in reason and str(table) in reason and "; raise the limit of file sizes" in reason


def test_a_full_place_of_reports_is_found_before_any_work(tmp_path: Path) -> None:
    table = shutil.copytree(CLICKS, tmp_path / "clicks")
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        document = optimized(table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before
    reason = str(document.reason)
    assert document.outcome is Outcome.FAILED and is_sentence(reason), reason
    assert str(tmp_path / "reports") in reason and "; nothing was done; raise the limit of file sizes" in reason


@contextmanager
def as_another_user() -> Iterator[None]:
    """Root may write anywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(user)


def test_a_folder_that_may_not_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        table = shutil.copytree(CLICKS, Path(folder) / "clicks")
        (Path(folder) / "reports").mkdir(mode=0o777)
        (Path(folder) / "reports").chmod(0o777)
        for each in (table, *table.rglob("*")):
            each.chmod(0o555 if each.is_dir() else 0o444)
        with as_another_user():
            document = optimized(table)
        for each in (table, *table.rglob("*")):
            each.chmod(0o755)
    reason = str(document.reason)
    assert document.outcome is Outcome.FAILED and is_sentence(reason), reason
    assert "Permission denied" in reason and str(table) in reason and "; let the user of this process write" in reason
