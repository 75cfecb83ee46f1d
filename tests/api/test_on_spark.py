"""Functions that read on Spark, in a session of the caller's, which stays as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.commands import said

import nightkeep

SAMPLE = Path(__file__).parents[2] / "samples" / "delta" / "shop.db" / "clicks"


@pytest.mark.extended
def test_a_run_its_check_and_a_comparison_in_the_callers_session(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLE, tmp_path / "clicks")
    table, reports = f"delta:{tmp_path}/clicks", tmp_path / "reports"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        runs = nightkeep.run(table, operation="optimize", reports=reports, spark=spark)
        report = nightkeep.check(table, reports=reports, spark=spark)
        last = nightkeep.diff(table, last=True, reports=reports, spark=spark)
        difference = nightkeep.diff(table, version=16, other=runs[0].committed_version or 0, spark=spark)
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert spark.range(3).count() == 3
    assert (runs.outcome, runs[0].expectations.status, report.status) == ("verified", "passed", "passed")
    assert last.equal and str(last).startswith("version 17 and 16: ")
    assert difference.equal and str(difference).startswith("version 16 and 17: ")
    compared = ("--version", "16", "--other", "17")
    answers = (said(capsys, "check", table, "--json"), said(capsys, "diff", table, *compared, "--json"))
    for document, answer in zip((report.to_json(), difference.to_json()), answers, strict=True):
        assert answer.status == 0
        # Great Expectations tells in its results when it judged.
        own_time = {"seconds": 0, "validations": []}
        assert {**document, **own_time} == {**answer.json, **own_time}
