"""Rows on Spark and expectations -> answers of Great Expectations without values of rows; where values are asked for,
the same answers once more, with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nightkeep.causes import cause_in, one_sentence
from nightkeep.checking.expectations import GX_AT_WORK, error_of, quiet_context
from nightkeep.checking.quick_import import quick_import
from nightkeep.model.check_values import Evidence
from nightkeep.model.own_expectations import OwnExpectation
from nightkeep.records.document import CheckStatus

with quick_import():
    import great_expectations as gx
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.expectations.expectation import Expectation
    from great_expectations.expectations.registry import get_expectation_impl


@dataclass(frozen=True, slots=True)
class Answer:
    """How one expectation ended. `result`: in Great Expectations' own format."""

    status: CheckStatus
    detail: str
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer for each expectation, in order, and the validation of all in Great Expectations' own result format."""

    each: tuple[Answer, ...]
    validation: dict[str, Any]


def ask(rows: DataFrame, expectations: Sequence[OwnExpectation], evidence: Evidence) -> tuple[Answers, Answers | None]:
    """The answers without any value of a row, and those with values; None where the evidence is `keys`."""
    made = [_made(each, number) for number, each in enumerate(expectations)]
    suite = gx.ExpectationSuite(
        name="expectations of the policy", expectations=[each for each in made if isinstance(each, Expectation)]
    )
    shown = _SHOWN_ROWS if evidence is Evidence.ROWS else 0
    how = {"result_format": "SUMMARY", "partial_unexpected_count": shown}
    with GX_AT_WORK, _read_once(rows, expectations) as held:
        batch = _rows_of_any_table().get_batch(batch_parameters={"dataframe": held})
        validated = batch.validate(suite, result_format=how)
    known = {*rows.columns, *(text for each in expectations for text in _texts(each.kwargs))}
    bare = _answers(validated, expectations, made, known)
    return bare, _answers(validated, expectations, made, None) if evidence is Evidence.ROWS else None


def _answers(
    validated: Any,
    expectations: Sequence[OwnExpectation],
    made: Sequence[Expectation | Exception],
    known: set[str] | None,
) -> Answers:
    """The answers; with values where nothing is `known`: names and texts of the policy, which may be quoted."""
    found: dict[int, Answer] = {}
    for outcome in validated.results:
        config = outcome.expectation_config
        assert config is not None
        number, error = config.meta[_NUMBER], error_of(outcome)
        result: dict[str, Any] = dict(outcome.to_json_dict())
        if error is not None:
            reason = cause_in(error) if known is None else without_quotes(error, known)
            result["exception_info"] = _raised(reason)
            found[number] = Answer(CheckStatus.ERRORED, reason, result)
            continue
        if known is not None:
            result["result"] = _counts(config.type, outcome.result)
        status = CheckStatus.PASSED if outcome.success else CheckStatus.FAILED
        found[number] = Answer(status, _detail(result["result"]), result)
    answers = tuple(found.get(number) or _errored(each, made[number]) for number, each in enumerate(expectations))
    whole: dict[str, Any] = validated.to_json_dict()
    return Answers(answers, {**whole, "results": [dict(answer.result) for answer in answers]})


def without_quotes(message: str, known: set[str]) -> str:
    """The cause of an error without what it may quote of a row: of Spark's errors the name of the class."""
    first, line = (text.strip().partition("\n")[0] for text in (message, one_sentence(message)))
    spark = _SPARKS.search(line) or _SPARKS.search(first)
    if spark is not None:
        return f"Spark: {spark[1]}"
    return _QUOTED.sub(lambda found: found[0] if found[0][1:-1] in known else "...", line)[:_LONGEST]


_NUMBER: Final = "number"
"""The place of an expectation, as Great Expectations returns results in any order."""
_SHOWN_ROWS: Final = 20
_LONGEST: Final = 300
_SPARKS: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_COUNTS: Final = (
    "element_count",
    "unexpected_count",
    "unexpected_percent",
    "missing_count",
    "missing_percent",
    "unexpected_percent_total",
    "unexpected_percent_nonmissing",
)
_COUNTING: Final = re.compile(
    "expect_table_.*|expect_column_to_exist|expect_column_unique_value_count_to_be_between|expect_column_proportion_of_.*"
    "|expect_column_type_to_be|expect_column_values_to_be_(of_type|in_type_list)|unexpected_rows_expectation"
)
"""Types whose observed value is a number of rows, values or columns, a type or a name, and no value of a row."""


@contextmanager
def _read_once(rows: DataFrame, expectations: Sequence[OwnExpectation]) -> Iterator[DataFrame]:
    """The rows, computed when they are first read, then kept in Spark's storage, whose memory is bounded, and on disk.

    Great Expectations reads them once for each column that may be null, and more than once for some types.
    """
    used = _used(rows.columns, expectations)
    held = rows.select(*(F.col(_quoted(name)) for name in rows.columns if name in used))
    held.persist(StorageLevel.MEMORY_AND_DISK)
    absent = {field.name: F.lit(None).cast(field.dataType) for field in rows.schema.fields if field.name not in used}
    try:
        columns = (absent.get(name, F.col(_quoted(name))).alias(name) for name in rows.columns)
        yield held.select(*columns)
    finally:
        held.unpersist()


def _used(columns: Sequence[str], expectations: Sequence[OwnExpectation]) -> set[str]:
    """The columns whose values the expectations may read. Others keep their names and types, and have no values."""
    texts = [text.casefold() for each in expectations for text in _texts(each.kwargs)]
    if any("*" in text for text in texts):  # A query or a condition that may mean every column.
        return set(columns)
    return {name for name in columns if any(name.casefold() in text for text in texts)}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _made(expectation: OwnExpectation, number: int) -> Expectation | Exception:
    """The expectation as Great Expectations has it, or why it cannot be made."""
    try:
        kind: Any = get_expectation_impl(expectation.type)
        made: Expectation = kind(
            **expectation.kwargs,
            severity=expectation.severity.value,
            description=expectation.description,
            meta={_NUMBER: number},
        )
        return made
    except (ValueError, TypeError) as failure:
        return failure


def _errored(expectation: OwnExpectation, failure: object) -> Answer:
    """What could not be made is of the policy: its message quotes no row."""
    why = " ".join(str(failure).split())[:_LONGEST] or "it has no result"
    severity = expectation.severity.value
    config = {"type": expectation.type, "kwargs": dict(expectation.kwargs), "severity": severity, "meta": {}}
    result = {"success": False, "expectation_config": config, "result": {}, "meta": {}, "exception_info": _raised(why)}
    return Answer(CheckStatus.ERRORED, why, result)


def _raised(message: str) -> dict[str, object]:
    return {"raised_exception": True, "exception_message": message, "exception_traceback": None}


def _counts(kind: str, result: Mapping[str, Any]) -> dict[str, Any]:
    kept = (*_COUNTS, "observed_value") if _COUNTING.fullmatch(kind) else _COUNTS
    return {name: result[name] for name in kept if name in result}


def _detail(result: Mapping[str, Any]) -> str:
    if result.get("element_count") is not None:
        return f"{result.get('unexpected_count') or 0:,} of {result['element_count']:,} rows are not as expected"
    return f"found {result['observed_value']}" if result.get("observed_value") is not None else "asked of all rows"


def _texts(value: object) -> list[str]:
    """Every text of a policy's arguments."""
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


@cache
def _rows_of_any_table() -> BatchDefinition[None]:
    """The batch definition for the rows of any table. Great Expectations would keep them in memory by itself."""
    source = quiet_context().data_sources.add_spark(name="rows", persist=False)
    return source.add_dataframe_asset(name="rows").add_batch_definition_whole_dataframe("all")
