"""Facts of units -> one Great Expectations suite -> results, each passed, failed, errored or not applicable.

The data set is the facts, one small row per comparison. The suite never reads rows of a table, and needs no Spark. A
fact that a comparison does not have is None. An expectation for which no comparison has facts is not applicable: it
could not have failed, and so must not count as passed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, reduce
from threading import RLock
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.causes import cause_in
from nightkeep.checking.quick_import import quick_import
from nightkeep.model.check_values import AuditedRow, KeptRow
from nightkeep.records.check_report import ExpectationResult
from nightkeep.records.document import CheckStatus

with quick_import():
    import great_expectations as gx
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.core.expect_column_pair_values_to_be_equal import (
        ExpectColumnPairValuesToBeEqual,
    )
    from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
    from great_expectations.expectations.expectation import Expectation


@dataclass(frozen=True, slots=True)
class FactRow:
    """Both sides of one comparison of one unit. Hashes are text, since they use all 64 bits.

    None is a fact that was not measured, or that the table cannot have.
    """

    unit: str
    comparison: str
    base_rows: int | None = None
    candidate_rows: int | None = None
    base_hash_a: str | None = None
    candidate_hash_a: str | None = None
    base_hash_b: str | None = None
    candidate_hash_b: str | None = None
    base_order: str | None = None
    candidate_order: str | None = None
    missing: int | None = None
    extra: int | None = None
    distinct_keys: int | None = None
    expected_rows: int | None = None
    unsound: int | None = None
    misstated: int | None = None
    unreported: int | None = None


Judged = tuple[tuple[ExpectationResult, ...], tuple[Mapping[str, Any], ...]]
"""Results, and the validation in Great Expectations' own format; none if no expectation applies."""


def expect(rows: Sequence[FactRow], reasons: Mapping[str, str], *, version: int | None = None) -> Judged:
    """Evaluate `EXPECTATIONS` on `rows`, in order: one result for each, or one per unit in which it fails.

    `reasons` state why the table has no fact of that name. The validation names the `version`.
    """
    results, validations = _expected(rows, EXPECTATIONS, reasons)
    return results, tuple({**v, "meta": {**v["meta"], "nightkeep": {"version": version}}} for v in validations)


def expect_kept(rows: Sequence[KeptRow]) -> tuple[ExpectationResult, ...]:
    """Evaluate `KEPT` on `rows`, as `expect` does."""
    return _expected(rows, KEPT, {})[0]


def expect_audited(rows: Sequence[AuditedRow]) -> Judged:
    """Evaluate `AUDITED` on `rows`, as `expect` does."""
    return _expected(rows, AUDITED, {})


def _expected(
    rows: Sequence[FactRow | KeptRow | AuditedRow], expectations: Sequence[Expectation], reasons: Mapping[str, str]
) -> Judged:
    facts = pa.Table.from_pylist([asdict(row) for row in rows])
    # Whole numbers stay whole beside None only as objects: pandas would make them floats.
    frame = facts.to_pandas(integer_object_nulls=True)
    compared = {_name(e): _count_complete(facts, e) for e in expectations}
    evaluated = [e for e in expectations if compared[_name(e)]]
    with GX_AT_WORK:
        batch = _facts_of_any_table().get_batch(batch_parameters={"dataframe": frame})
        outcomes, validation = _validated(batch, evaluated)
    results = tuple(
        result
        for e in expectations
        for result in (
            _results(_name(e), outcomes[_name(e)], compared=compared[_name(e)])
            if e in evaluated
            else [_silent(e, reasons)]
        )
    )
    return results, validation


def _count_complete(facts: pa.Table, expectation: Expectation) -> int:
    """How many rows have every fact of the expectation. Great Expectations reports missing columns."""
    present = [pc.is_valid(facts.column(column)) for column in _columns(expectation) if column in facts.column_names]
    return facts.filter(reduce(pc.and_, present)).num_rows if present else facts.num_rows


def _silent(expectation: Expectation, reasons: Mapping[str, str]) -> ExpectationResult:
    why = next((reasons[column] for column in _columns(expectation) if column in reasons), "nothing was compared")
    return ExpectationResult(_name(expectation), None, CheckStatus.NOT_APPLICABLE, why)


def _columns(expectation: Expectation) -> tuple[str, ...]:
    if isinstance(expectation, ExpectColumnPairValuesToBeEqual):
        return str(expectation.column_A), str(expectation.column_B)
    return (str(expectation.column),)  # type: ignore[attr-defined]


def _pair(description: str, base: str, candidate: str) -> Expectation:
    return ExpectColumnPairValuesToBeEqual(
        column_A=base, column_B=candidate, ignore_row_if="either_value_is_missing", description=description
    )


def _none(description: str, column: str) -> Expectation:
    return ExpectColumnValuesToBeInSet(column=column, value_set=[0], description=description)


EXPECTATIONS: Final = (
    _pair("the number of rows is the same", "base_rows", "candidate_rows"),
    _pair("the first sum of row hashes is the same", "base_hash_a", "candidate_hash_a"),
    _pair("the second sum of row hashes is the same", "base_hash_b", "candidate_hash_b"),
    _pair("rows are in the same order", "base_order", "candidate_order"),
    _none("no row is missing", "missing"),
    _none("no row is extra", "extra"),
    _pair("no key has more than one row", "candidate_rows", "distinct_keys"),
    _pair("metadata counts the rows that are there", "candidate_rows", "expected_rows"),
    _none("every row is live and stored under its own key", "unsound"),
    _none("statistics cover every value", "misstated"),
    _none("streaming readers receive every change", "unreported"),
)
_FILES: Final = (
    _none("every file of every retained version is there", "absent"),
    _none("every one has the size that metadata states", "resized"),
    _none("footers can be read", "unreadable"),
)
KEPT: Final = (
    *EXPECTATIONS[:3],
    _pair("metadata counts the rows that are there", "candidate_rows", "expected_rows"),
    *_FILES,
)
AUDITED: Final = (
    _none("maintenance by anybody keeps rows", "differing"),
    *EXPECTATIONS[:3],
    _none("metadata of commits contradicts nothing", "contradicted"),
    _none("no version has vanished", "vanished"),
    *_FILES,
)


def quiet_context() -> EphemeralDataContext:
    """A context of Great Expectations in memory, without analytics, progress bars and warnings."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)  # noqa: FBT003
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


@cache
def _facts_of_any_table() -> BatchDefinition[None]:
    """The batch definition for the facts of any table. Made once per process: it costs more than a validation."""
    source = quiet_context().data_sources.add_pandas(name="facts")
    return source.add_dataframe_asset(name="facts").add_batch_definition_whole_dataframe("all")


GX_AT_WORK: Final = RLock()
"""Held while Great Expectations validates: its context is one for the whole process, and tables are checked in threads.
"""
_WITH_UNITS: Final = {"result_format": "COMPLETE", "unexpected_index_column_names": ["unit", "comparison"]}


def _name(expectation: Expectation) -> str:
    return str(expectation.description)


def _validated(
    batch: Batch, expectations: Sequence[Expectation]
) -> tuple[dict[str, ExpectationValidationResult], tuple[dict[str, Any], ...]]:
    """Outcomes by the name of the expectation, and all of them as Great Expectations stores them, in any order."""
    if not expectations:
        return {}, ()
    suite = gx.ExpectationSuite(name="the same rows", expectations=list(expectations))
    validated = batch.validate(suite, result_format=_WITH_UNITS)
    configured = ((outcome.expectation_config, outcome) for outcome in validated.results)
    whole: dict[str, Any] = validated.to_json_dict()  # type: ignore[no-untyped-call]
    return {str(config.description): outcome for config, outcome in configured if config is not None}, (whole,)


def _results(name: str, outcome: ExpectationValidationResult, *, compared: int) -> list[ExpectationResult]:
    error = error_of(outcome)
    if error is not None:
        return [ExpectationResult(name, None, CheckStatus.ERRORED, cause_in(error))]
    if outcome.success:
        return [ExpectationResult(name, None, CheckStatus.PASSED, f"{compared} comparisons")]
    return [
        ExpectationResult(name, row["unit"], CheckStatus.FAILED, _detail(row))
        for row in outcome.result["unexpected_index_list"]
    ]


def _detail(row: Mapping[str, object]) -> str:
    values = ", ".join(f"{name} {value}" for name, value in row.items() if name not in ("unit", "comparison"))
    return f"{row['comparison']}: {values}"


def error_of(outcome: ExpectationValidationResult) -> str | None:
    """The message of the error that prevented the evaluation, or None. GX nests it by metric in some cases."""
    info = outcome.exception_info
    infos = [info] if "raised_exception" in info else list(info.values())
    return next((str(e["exception_message"]) for e in infos if e["raised_exception"]), None)
