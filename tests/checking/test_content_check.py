"""What Spark and Great Expectations say of a table that files were taken from."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.checking.content_check import KeptRow, content, judge
from nightkeep.errors import MissingFile
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Fingerprint, Operation, Outcome, View
from nightkeep.model.check_values import Content
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import load
from nightkeep.records import CheckStatus
from nightkeep.spark.engine import Engine

SAMPLES = Path(__file__).parents[2] / "samples"
TABLES = {
    "delta": ("delta/shop.db/clicks", "part-00000-left-over.c000.snappy.parquet"),
    "paimon": ("paimon/shop.db/customers", "bucket-0/data-left-over-0.parquet"),
}
BUDGET = 1 << 30
FILES = KeptRow("table", "3 retained versions", absent=0, resized=0, unreadable=0)


class Running(Engine):
    """An engine with the session that all tests share."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(master="local[2]", task_memory_bytes=1 << 30)
        self._spark = session


@pytest.mark.parametrize("kind", TABLES)
def test_a_sweep_leaves_the_rows_that_were_there(kind: str, tmp_path: Path, spark: SparkSession) -> None:
    sample, left_over = TABLES[kind]
    shutil.copytree(SAMPLES / sample, tmp_path / "table")
    (tmp_path / "table" / left_over).write_bytes(b"left over")
    os.utime(tmp_path / "table" / left_over, (time.time() - 40 * 24 * 60 * 60,) * 2)
    policy = load("none.yaml", text="version: 1").effective(f"{kind}:{tmp_path}/table")
    order = Order(Operation.SWEEP, "r", str(tmp_path / "reports"), removal=RemovalOptions(mode=SweepMode.DELETE))
    found = run_one(policy, order, Running(spark)).document
    assert (found.outcome, found.reason) == (Outcome.VERIFIED, "1 orphan of 9 bytes deleted")
    assert {result.status for result in found.expectations.results} == {CheckStatus.PASSED}
    assert found.expectations.status is CheckStatus.PASSED
    views = [View.RAW, View.MERGED] if kind == "paimon" else [View.RAW]
    assert [unit.extra["view"] for unit in found.units] == [view.value for view in views]
    assert all(unit.equal and unit.rows for unit in found.units)
    with pytest.raises(MissingFile, match="version 99: "):
        content(policy.address, spark=spark, byte_budget=BUDGET, version=99)


HELD = Content(7, {View.RAW: Fingerprint(5, 11, 12)}, "all", {View.RAW: 5})


@pytest.mark.parametrize(
    ("after", "files", "wrong"),
    [
        (replace(HELD, views={View.RAW: Fingerprint(5, 11, 13)}), FILES, ["the second sum of row hashes is the same"]),
        (
            replace(HELD, views={View.RAW: Fingerprint(0, 0, 0)}),
            FILES,
            [
                "the number of rows is the same",
                "the first sum of row hashes is the same",
                "the second sum of row hashes is the same",
                "metadata counts the rows that are there",
            ],
        ),
        (
            None,
            replace(FILES, absent=1, resized=2, unreadable=3),
            [
                "every file of every retained version is there",
                "every one has the size that metadata states",
                "footers can be read",
            ],
        ),
    ],
    ids=["another hash", "no rows", "files"],
)
def test_each_expectation_fails_by_itself(after: Content | None, files: KeptRow, wrong: list[str]) -> None:
    found = judge(HELD, after, files)
    assert [each.name for each in found if each.status is CheckStatus.FAILED] == wrong
    silent = [each.name for each in found if each.status is CheckStatus.NOT_APPLICABLE]
    assert len(silent) == (4 if after is None else 0), "without contents only files can be judged"


def test_a_version_that_looks_as_empty_before_as_after_is_no_proof() -> None:
    empty = replace(HELD, views={View.RAW: Fingerprint()})
    found = judge(empty, empty, FILES)
    assert [each.name for each in found if each.status is CheckStatus.FAILED] == [
        "metadata counts the rows that are there"
    ]
