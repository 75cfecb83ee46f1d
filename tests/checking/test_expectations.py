"""Facts -> what Great Expectations says of them. Every expectation can fail, alone, or says why it does not apply."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from nightkeep.checking.expectations import EXPECTATIONS, FactRow, expect
from nightkeep.records.check_report import ExpectationResult
from nightkeep.records.document import CheckStatus

RIGHT = FactRow(
    "day=1",
    "published",
    base_rows=5,
    candidate_rows=5,
    base_hash_a="f" * 16,
    candidate_hash_a="f" * 16,
    base_hash_b="0" * 16,
    candidate_hash_b="0" * 16,
    base_order="a" * 16,
    candidate_order="a" * 16,
    missing=0,
    extra=0,
    distinct_keys=5,
    expected_rows=5,
    unsound=0,
    misstated=0,
    unreported=0,
)
OTHER = replace(RIGHT, unit="day=2")
NAMES = [str(each.description) for each in EXPECTATIONS]
WRONG = {
    "the number of rows is the same": {"base_rows": 6},
    "the first sum of row hashes is the same": {"candidate_hash_a": "f" * 15 + "e"},
    "the second sum of row hashes is the same": {"candidate_hash_b": "0" * 15 + "1"},
    "rows are in the same order": {"candidate_order": "a" * 15 + "b"},
    "no row is missing": {"missing": 1},
    "no row is extra": {"extra": 2},
    "no key has more than one row": {"distinct_keys": 4},
    "metadata counts the rows that are there": {"expected_rows": 2**60 + 1},
    "every row is live and stored under its own key": {"unsound": 1},
    "statistics cover every value": {"misstated": 1},
    "streaming readers receive every change": {"unreported": 1},
}
OWN_FACT = {
    "the number of rows is the same": "base_rows",
    "the first sum of row hashes is the same": "base_hash_a",
    "the second sum of row hashes is the same": "base_hash_b",
    "rows are in the same order": "base_order",
    "no row is missing": "missing",
    "no row is extra": "extra",
    "no key has more than one row": "distinct_keys",
    "metadata counts the rows that are there": "expected_rows",
    "every row is live and stored under its own key": "unsound",
    "statistics cover every value": "misstated",
    "streaming readers receive every change": "unreported",
}


def statuses(results: tuple[ExpectationResult, ...]) -> dict[str, CheckStatus]:
    return {each.name: each.status for each in results}


def test_all_of_them_pass_on_facts_that_are_right() -> None:
    found, _ = expect([RIGHT, OTHER], {})
    assert statuses(found) == dict.fromkeys(NAMES, CheckStatus.PASSED)
    assert {each.detail for each in found} == {"2 comparisons"}


@pytest.mark.parametrize("name", NAMES)
def test_each_fails_alone_and_names_the_unit(name: str) -> None:
    found, _ = expect([RIGHT, replace(OTHER, **WRONG[name])], {})  # type: ignore[arg-type]
    (wrong,) = (each for each in found if each.status is not CheckStatus.PASSED)
    assert (wrong.name, wrong.unit, wrong.status) == (name, "day=2", CheckStatus.FAILED)
    for fact, value in WRONG[name].items():
        assert f"{fact} {value}" in wrong.detail


@pytest.mark.parametrize("name", NAMES)
def test_each_states_that_it_does_not_apply_where_nothing_could_fail_it(name: str) -> None:
    without = replace(RIGHT, **{OWN_FACT[name]: None})  # type: ignore[arg-type]
    found, _ = expect([without, replace(without, unit="day=2")], {OWN_FACT[name]: "there is none"})
    (silent,) = (each for each in found if each.status is not CheckStatus.PASSED)
    assert silent == ExpectationResult(name, None, CheckStatus.NOT_APPLICABLE, "there is none")


@pytest.mark.parametrize("name", NAMES)
def test_units_without_the_fact_do_not_hide_a_fault_and_are_not_counted(name: str) -> None:
    without = replace(RIGHT, **{OWN_FACT[name]: None})  # type: ignore[arg-type]
    assert {each.name: each.detail for each in expect([without, OTHER], {})[0]}[name] == "1 comparisons"
    found, _ = expect([without, replace(OTHER, **WRONG[name])], {})  # type: ignore[arg-type]
    assert statuses(found)[name] is CheckStatus.FAILED


def test_nothing_compared_passes_nothing() -> None:
    empty = FactRow("table", "version 3")
    assert set(statuses(expect([empty], {})[0]).values()) == {CheckStatus.NOT_APPLICABLE}


def test_every_fact_is_of_an_expectation() -> None:
    told = {field.name for field in fields(FactRow)} - {"unit", "comparison"}
    assert told == {*OWN_FACT.values(), "candidate_rows", "candidate_hash_a", "candidate_hash_b", "candidate_order"}
