"""What a policy expects of rows: by whose commit it fails, what holds the table, and what is told of rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.checking.published_samples import NAMES, policy_file, published
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.asked_rows import ask, without_quotes
from nightkeep.checking.own_expectations import _since
from nightkeep.model import Outcome
from nightkeep.model.check_values import Evidence
from nightkeep.model.own_expectations import OwnExpectation, Severity
from nightkeep.records import CheckStatus, RunDocument, held
from nightkeep.records.own_report import OwnReport, OwnResult
from nightkeep.spark.engine import Engine

MARK = "PLANTED-9f31"
PASSED, FAILED, ERRORED = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERRORED


def expectation(kind: str, severity: str = "critical", **kwargs: object) -> str:
    return json.dumps({"type": f"expect_{kind}", "kwargs": kwargs, "severity": severity})


def policy(*expectations: str, check: str = "{}") -> str:
    return f"check: {check}\nexpectations: [{', '.join(expectations)}]\n"


def told(document: RunDocument) -> dict[str, tuple[str, str]]:
    """Status and detail of each expectation of the policy, by its type."""
    own = (result for result in document.expectations.results if "severity" in result.extra)
    return {str(result.extra["type"]).removeprefix("expect_"): (result.status, str(result.detail)) for result in own}


@pytest.mark.parametrize("format_", some_extended(["delta", "iceberg", "paimon"], keep=1))
def test_what_failed_before_as_well_is_reported_and_holds_nothing(
    format_: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = {"delta": "page", "iceberg": "status", "paimon": "status"}[format_]
    settings = policy(
        expectation("table_row_count_to_equal", value=3),
        expectation("column_values_to_match_regex", "info", column=text, regex="("),
        expectation("column_values_to_be_in_set", "warning", column=text, value_set=[MARK]),
        expectation("column_to_exist", column=text),
    )
    made = published(tmp_path, NAMES[format_], settings, monkeypatch, spark)
    done = made.check(spark)
    assert (done.outcome, done.expectations.status, done.go_back) == (Outcome.VERIFIED, PASSED, None), done
    assert held(made.reports, done.table) is None
    found = told(done)
    assert [status for status, _ in found.values()] == [FAILED, ERRORED, FAILED, PASSED]
    base = done.commits[0].parent_version
    for kind in ("table_row_count_to_equal", "column_values_to_be_in_set"):
        assert f"it fails in version {base}, the one before, as well: it is about the data" in found[kind][1]
    assert found["column_values_to_match_regex"][1].startswith("info: ")
    assert "policy expectations not met: expect_table_row_count_to_equal(value=3) failed" in str(
        done.expectations.reason
    )
    kept = json.loads(Path(str(done.expectations.docs)).read_text())
    assert [suite["suite_name"] for suite in kept] == ["the same rows", f"{done.table}: policy"]
    assert [result["success"] for result in kept[1]["results"]] == [False, False, False, True]


def test_our_commit_that_breaks_what_is_critical_holds_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = NAMES["delta"]
    settings = policy(
        expectation("column_values_to_not_be_null", "warning", column="user_id"),
        expectation("table_row_count_to_be_between", max_value=10_000_000, min_value=2),
        expectation("table_row_count_to_equal", "warning", value=-1),
    )
    file = policy_file(tmp_path, name, settings, monkeypatch)
    options: dict[str, Any] = {"policy": file, "reports": tmp_path / "reports", "spark": spark}
    done = nightkeep.delete(name, rows_where="user_id IS NULL OR user_id IS NOT NULL", **options)
    assert done.outcome is Outcome.MISMATCH and done.committed_version is not None, (done.reason, done.expectations)
    assert "broke what the policy expects: expect_table_row_count_to_be_between" in str(done.reason)
    assert str(done.commits[0].parent_version) in str(done.go_back)
    assert held(tmp_path / "reports", name) is not None
    found = told(done)
    assert [status for status, _ in found.values()] == [PASSED, FAILED, FAILED]
    assert "it does not fail in version" in found["table_row_count_to_be_between"][1]
    assert "as well: it is about the data" in found["table_row_count_to_equal"][1]
    report = nightkeep.check(name, **options)
    assert report.status is FAILED and report.results[-1].name.startswith("expect_table_row_count_to_equal")
    # Nobody runs a table on hold, and neither Spark nor Great Expectations starts for it.
    again = nightkeep.run(name, policy=file, reports=tmp_path / "reports")
    assert [document.outcome for document in again.documents] == [Outcome.SKIPPED]


@pytest.mark.extended
def test_a_critical_one_that_cannot_be_asked_fails_the_run_and_holds_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = policy(expectation("column_values_to_match_regex", column="user_id", regex="("))
    made = published(tmp_path, NAMES["delta"], settings, monkeypatch, spark)
    done = made.check(spark)
    assert (done.outcome, done.expectations.status) == (Outcome.FAILED, ERRORED)
    assert done.awaits_check and held(made.reports, done.table) is None


@pytest.mark.extended
def test_only_the_partitions_that_changed_are_asked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = expectation("table_row_count_to_equal", "warning", value=-1)
    found = []
    for scope in ("all", "changed"):
        folder = tmp_path / scope
        folder.mkdir()
        file = policy_file(folder, "shop.orders", policy(counts, check=f"{{expectations_on: {scope}}}"), monkeypatch)
        (done,) = nightkeep.run(
            "shop.orders",
            operation="upgrade",
            where="dt = '2026-11-01'",
            policy=file,
            reports=folder / "reports",
            spark=spark,
        ).documents
        assert done.outcome is Outcome.VERIFIED, done
        found.append(int(told(done)["table_row_count_to_equal"][1].split("found ")[1].split(";")[0]))
    assert 0 < found[1] < found[0]


def test_an_unknown_column_is_refused_when_the_table_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = expectation("compound_columns_to_be_unique", column_list=["user_id", "user_idd"])
    file = policy_file(tmp_path, NAMES["delta"], policy(asked), monkeypatch)
    (done,) = nightkeep.plan(NAMES["delta"], policy=file).documents
    assert done.outcome is Outcome.REFUSED
    place = f"{file}:6: tables[0].expectations[0].kwargs.column_list"
    assert f"{place}: expected a column of the table, found 'user_idd'; did you mean user_id?" in str(done.reason)
    file = policy_file(tmp_path, NAMES["delta"], "check: {keys: [click_idd]}", monkeypatch)
    (done,) = nightkeep.plan(NAMES["delta"], policy=file).documents
    assert done.outcome is Outcome.REFUSED
    assert "check.keys: expected a column of the table, found 'click_idd'; did you mean click_id?" in str(done.reason)


# ---- answers ----


def own(kind: str, **kwargs: object) -> OwnExpectation:
    return OwnExpectation(kind if kind.startswith("unexpected") else f"expect_{kind}", kwargs, Severity.INFO)


def test_answers_hold_no_value_of_a_row_unless_asked_for(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(n, f"{MARK}-{n}") for n in range(30)], "id int, name string")
    asked = [
        own("column_values_to_be_in_set", column="name", value_set=["a"]),
        own("column_most_common_value_to_be_in_set", column="name", value_set=["a"]),
        own("column_max_to_be_between", column="id", max_value=3),
        own("column_values_to_be_between", column="name", max_value=3),
        own("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch} WHERE CAST(name AS INT) = 1"),
        own("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch} WHERE id > 9"),
        own("table_row_count_to_equal", value=3),
        own("column_values_to_be_of_type", column="name"),
    ]
    bare, shown = ask(rows, asked, Evidence.KEYS)
    answers, validation = bare.each, bare.validation
    assert shown is None
    assert [answer.status for answer in answers] == [FAILED, FAILED, FAILED, ERRORED, ERRORED, FAILED, FAILED, ERRORED]
    assert MARK not in json.dumps(validation) and MARK not in str([answer.detail for answer in answers])
    assert answers[2].detail == "asked of all rows" and "type_" in answers[7].detail
    assert answers[0].detail == "30 of 30 rows are not as expected"
    assert (answers[4].detail, answers[5].detail) == ("Spark: CAST_INVALID_INPUT", "found 20")
    assert [each["expectation_config"]["type"] for each in validation["results"]] == [each.type for each in asked]
    assert len(validation["results"]) == 8 and validation["statistics"]["evaluated_expectations"] == 7
    beside, shown = ask(rows, asked, Evidence.ROWS)
    assert beside.each == answers and MARK not in json.dumps(beside.validation)
    assert shown is not None and MARK in json.dumps(shown.validation)
    assert len(shown.validation["results"][0]["result"]["partial_unexpected_list"]) == 20
    assert shown.each[2].detail == "found 29" and MARK in shown.each[4].detail


def test_a_suite_reads_the_rows_once_and_keeps_none_of_them(spark: SparkSession) -> None:
    read = spark.sparkContext.accumulator(0)

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    made = spark.range(100).selectExpr("id", "id % 7 AS `e f`", "nullif(id % 3, 0) AS c")
    rows = made.mapInArrow(counted, made.schema)
    asked = [
        own("column_values_to_not_be_null", column="id"),
        own("column_values_to_be_between", column="c", max_value=1),
        own("column_values_to_be_unique", column="id"),
        own("compound_columns_to_be_unique", column_list=["id", "c"]),
        own("column_pair_values_a_to_be_greater_than_b", column_A="c", column_B="id"),
        own("column_max_to_be_between", column="id", max_value=9),
        own("table_row_count_to_equal", value=100),
        own("table_columns_to_match_ordered_list", column_list=rows.columns),
        own("column_values_to_be_of_type", column="id", type_="LongType"),
    ]
    kept = spark.sparkContext._jsc.sc().getPersistentRDDs().size()  # type: ignore[union-attr]
    answers, _ = ask(rows, asked, Evidence.KEYS)
    assert [answer.status for answer in answers.each] == [PASSED, FAILED, PASSED, PASSED, FAILED, FAILED, *[PASSED] * 3]
    assert read.value == 100
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().size() == kept  # type: ignore[union-attr]
    for text in ("SELECT DISTINCT * FROM {batch}", "SELECT id FROM {batch} WHERE `e f` >= 0"):
        query = own("unexpected_rows_expectation", unexpected_rows_query=text)
        assert ask(rows, [query], Evidence.KEYS)[0].each[0].detail == "found 100"


def test_errors_are_reported_without_what_they_quote() -> None:
    known = {"name"}
    assert without_quotes("no column 'name' of \"12 x\"\nmore", known) == "no column 'name' of ..."
    spark = "An error: [CAST_INVALID_INPUT.X] The value 'a' of the type"
    assert without_quotes(spark, known) == "Spark: CAST_INVALID_INPUT.X"
    trace = "Traceback (most recent call last):\n  File 'f', line 1, in f\nValueError: not a number: '12 x'"
    worker = (
        f"An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: failed:\n{trace}\n\n\tat a.B"
    )
    assert without_quotes(worker, known) == "ValueError: not a number: ..."


@pytest.mark.parametrize(
    ("failing", "since", "said"),
    [
        ({6, 7, 8, 9}, None, "fails in version 6, the one before, as well"),
        ({9}, (9, 8), "does not fail in version 8"),
        ({7, 8, 9}, (7, 6), "does not fail in version 6"),
        ({8, 9}, None, "another writer's commit before version 9 broke it"),
    ],
)
def test_the_commit_that_broke_it_is_ours_or_anothers(
    failing: set[int], since: tuple[int, int] | None, said: str
) -> None:
    """Our commits are 7, on version 6, and 9, on version 8, which another writer made."""
    asked: Any = SimpleNamespace(
        answer=lambda version, number: SimpleNamespace(status=FAILED if version in failing else PASSED)
    )
    found, sentence = _since(asked, ((7, 6), (9, 8)), 0)
    assert found == since and said in sentence


def test_a_version_before_that_is_gone_clears_nobody() -> None:
    asked: Any = SimpleNamespace(answer=lambda version, number: None)
    assert _since(asked, ((7, 6),), 0)[0] == (7, 6)


def test_a_table_with_nothing_to_do_is_asked_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("Spark")

    monkeypatch.setattr(Engine, "spark", refused)
    settings = policy(expectation("table_row_count_to_equal", value=3))
    file = policy_file(tmp_path, "lake.clicks", settings, monkeypatch)
    options: dict[str, Any] = {"policy": file, "reports": tmp_path / "reports", "operation": "optimize"}
    (done,) = nightkeep.run("lake.clicks", where="day = DATE'1999-01-01'", **options).documents
    assert (done.outcome, done.expectations.results) == (Outcome.UNCHANGED, ())


def test_what_is_reported_is_named() -> None:
    unmet = [OwnResult(own(f"x{n}"), FAILED, "", "") for n in range(5)]
    report = OwnReport((*unmet, OwnResult(own("y"), PASSED, "", "")))
    assert report.findings is not None and report.findings.endswith("expect_x2() failed and 2 more")
    assert (report.status, OwnReport((OwnResult(own("y"), PASSED, "", ""),)).findings) == (None, None)
