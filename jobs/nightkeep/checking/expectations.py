"""Facts of units -> one Great Expectations suite on Spark -> results, each passed, failed or errored.

The data set is the facts, one small row per comparison. The suite never reads rows of a table.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Final

import great_expectations as gx
import pyarrow as pa
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.core.result_format import ResultFormatUnion
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.datasource.fluent.interfaces import Batch
from great_expectations.expectations.core.expect_column_pair_values_to_be_equal import (
    ExpectColumnPairValuesToBeEqual,
)
from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
from great_expectations.expectations.expectation import Expectation
from pyspark.sql import SparkSession

from nightkeep.model.check_values import KeptRow
from nightkeep.reports.check_report import ExpectationResult
from nightkeep.reports.document import CheckStatus


@dataclass(frozen=True, slots=True)
class FactRow:
    """Both sides of one comparison of one unit. Hashes are text, since they use all 64 bits."""

    unit: str
    comparison: str
    base_rows: int
    candidate_rows: int
    base_hash_a: str
    candidate_hash_a: str
    base_hash_b: str
    candidate_hash_b: str
    missing: int
    extra: int
    distinct_keys: int
    expected_rows: int
    unsound: int
    misstated: int
    untold: int


def expect(rows: Sequence[FactRow], spark: SparkSession) -> tuple[ExpectationResult, ...]:
    """Evaluate `EXPECTATIONS` on `rows`, in order: one result for each, or one per unit in which it fails."""
    return _expected(rows, EXPECTATIONS, spark)


def expect_kept(rows: Sequence[KeptRow], spark: SparkSession) -> tuple[ExpectationResult, ...]:
    """Evaluate `KEPT` on `rows`, as `expect` does."""
    return _expected(rows, KEPT, spark)


def _expected(
    rows: Sequence[FactRow | KeptRow], expectations: Sequence[Expectation], spark: SparkSession
) -> tuple[ExpectationResult, ...]:
    facts = spark.createDataFrame(pa.Table.from_pylist([asdict(row) for row in rows]))
    batch = _facts_of_any_table().get_batch(batch_parameters={"dataframe": facts})
    outcomes = _validated(batch, expectations, "BOOLEAN_ONLY")
    failed = [e for e in expectations if not _error(outcomes[_name(e)]) and not outcomes[_name(e)].success]
    # Units are asked for only for the expectations that failed: for the others it would cost Spark jobs for nothing.
    outcomes |= _validated(batch, failed, _WITH_UNITS)
    return tuple(result for e in expectations for result in _results(_name(e), outcomes[_name(e)], compared=len(rows)))


def _pair(description: str, base: str, candidate: str) -> Expectation:
    return ExpectColumnPairValuesToBeEqual(column_A=base, column_B=candidate, description=description)


def _none(description: str, column: str) -> Expectation:
    return ExpectColumnValuesToBeInSet(column=column, value_set=[0], description=description)


EXPECTATIONS: Final = (
    _pair("the number of rows is the same", "base_rows", "candidate_rows"),
    _pair("the first sum of row hashes is the same", "base_hash_a", "candidate_hash_a"),
    _pair("the second sum of row hashes is the same", "base_hash_b", "candidate_hash_b"),
    _none("no row is missing", "missing"),
    _none("no row is extra", "extra"),
    _pair("no key has more than one row", "candidate_rows", "distinct_keys"),
    _pair("metadata counts the rows that are there", "candidate_rows", "expected_rows"),
    _none("every row is live and stored under its own key", "unsound"),
    _none("statistics cover every value", "misstated"),
    _none("streaming readers are told every change", "untold"),
)
KEPT: Final = (
    *EXPECTATIONS[:3],
    _pair("metadata counts the rows that are there", "candidate_rows", "expected_rows"),
    _none("every file of every retained version is there", "absent"),
    _none("every one has the size that metadata tells", "resized"),
    _none("footers can be read", "unreadable"),
)


@cache
def _facts_of_any_table() -> BatchDefinition[None]:
    """The batch definition for the facts of any table. Made once per process: it costs more than a validation."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)  # noqa: FBT003
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_spark(name="facts", persist=False)
    return source.add_dataframe_asset(name="facts").add_batch_definition_whole_dataframe("all")


_WITH_UNITS: Final = {
    "result_format": "COMPLETE",
    "unexpected_index_column_names": ["unit", "comparison"],
}


def _name(expectation: Expectation) -> str:
    return str(expectation.description)


def _validated(
    batch: Batch, expectations: Sequence[Expectation], result_format: ResultFormatUnion
) -> dict[str, ExpectationValidationResult]:
    """Outcomes by the name of the expectation. Great Expectations returns them in any order."""
    if not expectations:
        return {}
    suite = gx.ExpectationSuite(name="the same rows", expectations=list(expectations))
    validated = batch.validate(suite, result_format=result_format)
    configured = ((outcome.expectation_config, outcome) for outcome in validated.results)
    return {str(config.description): outcome for config, outcome in configured if config is not None}


def _results(name: str, outcome: ExpectationValidationResult, *, compared: int) -> list[ExpectationResult]:
    error = _error(outcome)
    if error is not None:
        return [ExpectationResult(name, None, CheckStatus.ERRORED, error)]
    if outcome.success:
        return [ExpectationResult(name, None, CheckStatus.PASSED, f"{compared} comparisons")]
    return [
        ExpectationResult(name, row["unit"], CheckStatus.FAILED, _detail(row))
        for row in outcome.result["unexpected_index_list"]
    ]


def _detail(row: Mapping[str, object]) -> str:
    values = ", ".join(f"{name} {value}" for name, value in row.items() if name not in ("unit", "comparison"))
    return f"{row['comparison']}: {values}"


def _error(outcome: ExpectationValidationResult) -> str | None:
    """The message of the error that prevented the evaluation, or None. GX nests it by metric in some cases."""
    info = outcome.exception_info
    infos = [info] if "raised_exception" in info else list(info.values())
    return next((str(e["exception_message"]) for e in infos if e["raised_exception"]), None)
