"""The check, differences and contents of a table's versions, by the Spark of an engine.

Each function starts Spark and imports its module when it is called: a run without work needs neither, and Great
Expectations takes seconds to import.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest, Content, KeptRow
from nightkeep.model.own_expectations import OwnRequest
from nightkeep.records.check_report import CheckReport, DiffReport, ExpectationResult
from nightkeep.records.own_report import OwnReport
from nightkeep.spark.engine import Engine


def import_check() -> None:
    """Import what a check needs. An engine for checks does so while its session starts."""
    import nightkeep.checking.check  # noqa: F401, PLC0415 -- Great Expectations


def check(request: CheckRequest, engine: Engine) -> CheckReport:
    """The report of a check; see `checking.check.check`."""
    spark = engine.spark()
    from nightkeep.checking import check as asked  # noqa: PLC0415 -- Great Expectations

    return asked.check(request, spark=spark)


def expect_own(request: OwnRequest, engine: Engine) -> OwnReport:
    """What the policy's own expectations found; see `checking.own_expectations.expect_own`."""
    spark = engine.spark()
    from nightkeep.checking import own_expectations  # noqa: PLC0415 -- Great Expectations

    return own_expectations.expect_own(request, spark=spark)


def diff(address: Address, version: int, other: int, engine: Engine) -> DiffReport:
    """The rows that differ between two versions; see `checking.diff.diff`."""
    spark = engine.spark()
    from nightkeep.checking import diff as asked  # noqa: PLC0415 -- pyspark

    return asked.diff(address, version, other, spark=spark)


def content(address: Address, engine: Engine, *, byte_budget: int, version: int | None = None) -> Content:
    """The content of a version; see `checking.content_check.content`."""
    spark = engine.spark()
    from nightkeep.checking import content_check  # noqa: PLC0415 -- Great Expectations

    return content_check.content(address, spark=spark, byte_budget=byte_budget, version=version)


def judge(before: Content | None, after: Content | None, files: KeptRow) -> Sequence[ExpectationResult]:
    """The verdict on two contents; see `checking.content_check.judge`. Needs no Spark."""
    from nightkeep.checking import content_check  # noqa: PLC0415 -- Great Expectations

    return content_check.judge(before, after, files)
