"""Columns that the policy or the table says to be unique, where the format merges by none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.checking.published_samples import Published, Rows, published

from nightkeep.checking.check import check
from nightkeep.checking.unique_keys import distinct_keys, shared
from nightkeep.checking.unit_fingerprints import UnitFacts
from nightkeep.model import Fingerprint
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import CheckReport

UNIQUE = "no key has more than one row"


def repeated(rows: Rows) -> Rows:
    """The first row twice, and the last not at all: the number of rows stays."""
    return pa.concat_tables([rows.slice(0, 1), rows.slice(0, rows.num_rows - 1)])


def checked(table: Published, spark: SparkSession, keys: tuple[str, ...] = ()) -> CheckReport:
    request = CheckRequest(table.policy.address, table.document.committed_version, keys=keys)
    return check(request, spark=spark)


def verdict(report: CheckReport) -> tuple[CheckStatus, str]:
    (result,) = {(each.status, each.detail) for each in report.results if each.name == UNIQUE}
    return result


def test_columns_of_the_policy_are_counted(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = published(tmp_path, "lake.clicks", "check: {keys: [click_id]}", monkeypatch, spark)
    assert table.policy.settings.check.keys == ("click_id",)
    report = checked(table, spark, ("click_id",))
    assert (report.status, *verdict(report)) == (CheckStatus.PASSED, CheckStatus.PASSED, "6 comparisons")
    days = checked(table, spark, ("day",))
    assert verdict(days) == (CheckStatus.PASSED, "1 comparisons"), "one partition has no rows left"
    assert "in 5 units, 3,684 rows repeated day before as well" in days.coverage
    assert verdict(checked(table, spark))[1].endswith("and check.keys names none")
    unknown = checked(table, spark, ("clickid",))
    assert unknown.status is CheckStatus.ERRORED
    assert "check.keys: expected columns of the table (click_id, user_id," in unknown.reason
    table.tamper(repeated)
    found = checked(table, spark, ("click_id",))
    assert (found.status, verdict(found)[0]) == (CheckStatus.FAILED, CheckStatus.FAILED)


def test_shared_keys_of_the_version_before_are_no_fault_of_the_rewrite() -> None:
    clean, dirty = UnitFacts(Fingerprint(3, 1, 1), keys=3), UnitFacts(Fingerprint(3, 1, 1), keys=2)
    assert [distinct_keys(before, dirty) for before in (clean, dirty)] == [2, None]
    assert distinct_keys(UnitFacts(Fingerprint(3)), UnitFacts(Fingerprint(3))) is None
    assert shared(("id",), [clean, dirty, dirty]) == "in 2 units, 2 rows repeated id before as well"
    assert shared(("id",), [clean]) == shared((), [dirty]) == ""
