"""Both sides of some units -> facts -> the verdict of Great Expectations.

Fingerprints come first. If they differ, the check has failed, whatever happens to what would explain the difference:
rows that Python cannot show, a JVM that ends, statistics that cannot be read. The table is then held without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final

from nightkeep.checking.expectations import FactRow, expect
from nightkeep.checking.unique_keys import CountedKeys, distinct_keys, shared
from nightkeep.checking.unit_fingerprints import ComparedRows, UnitFacts, compare_rows, measure
from nightkeep.model import UnitKey, View
from nightkeep.records.check_report import CheckReport, Difference, ExpectationResult, UnitDifference
from nightkeep.records.document import CheckStatus
from nightkeep.spark.view import Side, TableVersion, TableView
from nightkeep.spark.waiting_threads import waiting_threads
from nightkeep.surprises import guarded, sentence

SAME_SUMS: Final = "the fingerprints of both sides are equal"
"""The expectation that failed if nothing but fingerprints could be compared."""
PUBLISHED, WHOLE = "published", "whole"
_NOT_JOINED: Final = "rows are joined where their hashes differ, and none do; check.join_budget asks for more"
_SHARED: Final = "rows of the version before share keys as well"
_SILENT: Final = {
    "base_rows": "rows have keys: one that is missing, extra or there twice is reported as such",
    "missing": _NOT_JOINED,
    "extra": _NOT_JOINED,
    "distinct_keys": "readers merge the rows of a key, so that none shows twice",
    "misstated": "no new file has statistics",
    "base_order": "readers are promised no order of rows",
}
"""Why a comparison may have no fact of that name, in any format."""


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Both sides of some units. `rows`: row counts of the candidate by metadata, None if metadata does not state them.

    `misstated`: the number of columns with wrong statistics, for each unit that has new statistics. `unreported`: the
    number of changes that the changelog lacks or has wrongly, for each unit with a changelog. `doubled`: the number of
    rows that repeat a key in files that both sides hold, for each unit where this was looked for.
    """

    name: str
    base: Side
    candidate: Side
    units: tuple[UnitKey, ...]
    rows: Mapping[UnitKey, int | None]
    misstated: Mapping[UnitKey, int] = field(default_factory=dict)
    unreported: Mapping[UnitKey, int] = field(default_factory=dict)
    doubled: Mapping[UnitKey, int] = field(default_factory=dict)


def compared(
    relation: TableView,
    comparisons: Sequence[ComparedSides],
    target: TableVersion,
    joined: Sequence[UnitKey],
    keys: CountedKeys,
) -> CheckReport:
    """The verdict on both comparisons. Rows of `joined` units are compared in the first one, even if sums agree.

    If sums differ and the rest cannot be finished, the report has failed all the same, and states why it has no more.
    """
    measured, wrong = _measured(relation, comparisons, target, keys)
    return guarded(
        lambda: _explained(relation, _with_statements(measured, wrong), target, joined, keys),
        lambda failure: _unexplained(measured, failure),
        f"the rows of version {target.number}",
    )


_Facts = Mapping[UnitKey, UnitFacts]
_Statements = Mapping[UnitKey, int]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A comparison with the facts of its sides."""

    comparison: ComparedSides
    before: _Facts
    after: _Facts

    @property
    def unequal(self) -> list[UnitKey]:
        return [unit for unit in self.comparison.units if self.before[unit].content != self.after[unit].content]


def _measured(
    relation: TableView, comparisons: Sequence[ComparedSides], target: TableVersion, keys: CountedKeys
) -> tuple[list[_Measured], Sequence[Future[_Statements]]]:
    """Each comparison with the facts of its sides; and, in ended futures, what the version states wrongly, and the keys
    that files repeat."""
    published, *_ = comparisons
    sides = [((each.base, each.candidate), each.units) for each in comparisons]
    # Of a small query, Spark's planner takes most of the time, and it runs in the thread that asks.
    with waiting_threads(2) as threads:
        states = (relation.misstated, relation.unreported)
        wrong = [threads.submit(state, target.number, target.parent, published.units) for state in states]
        wrong.append(threads.submit(relation.doubled, (published.base, published.candidate), published.units))
        measured = measure(relation, sides, keys=keys.names, keyed=keys.units)
    return [_Measured(each, *facts) for each, facts in zip(comparisons, measured, strict=True)], wrong


def _with_statements(measured: Sequence[_Measured], wrong: Sequence[Future[_Statements]]) -> list[_Measured]:
    """The first one also with what the version states wrongly."""
    published, *others = measured
    misstated, unreported, doubled = (each.result() for each in wrong)
    stated = replace(published.comparison, misstated=misstated, unreported=unreported, doubled=doubled)
    return [replace(published, comparison=stated), *others]


def _explained(
    relation: TableView,
    measured: Sequence[_Measured],
    target: TableVersion,
    joined: Sequence[UnitKey],
    keys: CountedKeys,
) -> CheckReport:
    rows: list[FactRow] = []
    differences: list[UnitDifference] = []
    silent = {**_SILENT, **relation.silent, **({"distinct_keys": _SHARED} if keys.names else {})}
    coverage = ""
    for each in measured:
        comparison, before, after, unequal = each.comparison, each.before, each.after, each.unequal
        coverage = coverage or shared(keys.names, before.values())
        equal = [unit for unit in joined if comparison.name == PUBLISHED and unit not in unequal]
        sides = (comparison.base, comparison.candidate)
        samples = compare_rows(relation, *sides, [*unequal, *equal], keys=keys.names)
        differing = [unit for unit, found in samples.items() if unit in unequal or found != ComparedRows()]
        differences += [UnitDifference(unit, comparison.name, samples[unit].difference) for unit in differing]
        rows += [
            _fact_row(relation, comparison, unit, before[unit], after[unit], samples.get(unit))
            for unit in comparison.units
        ]
    results, validation = expect([*rows, _version_row(target)], silent, version=target.number)
    status = _status(results)
    errors = (f"{each.name}: {each.detail}" for each in results if each.status is CheckStatus.ERRORED)
    return CheckReport(
        status,
        coverage,
        next(errors, None) if status is CheckStatus.ERRORED else None,
        results=results,
        differences=tuple(differences),
        validations=validation,
    )


def _unexplained(measured: Sequence[_Measured], failure: Exception) -> CheckReport:
    """The report of sums that differ, and of nothing else. Raises the failure if none do."""
    unequal = [(each, unit) for each in measured for unit in each.unequal]
    if not unequal:
        raise failure
    note = f"the rows were not compared: {sentence(failure)}"
    results = tuple(
        ExpectationResult(
            SAME_SUMS,
            str(unit),
            CheckStatus.FAILED,
            f"{each.comparison.name}: {each.before[unit].content} before, {each.after[unit].content} after",
        )
        for each, unit in unequal
    )
    differences = tuple(UnitDifference(unit, each.comparison.name, Difference(note=note)) for each, unit in unequal)
    return CheckReport(CheckStatus.FAILED, "", f"fingerprints differ; {note}", results=results, differences=differences)


def _fact_row(
    relation: TableView,
    comparison: ComparedSides,
    unit: UnitKey,
    before: UnitFacts,
    after: UnitFacts,
    joined: ComparedRows | None,
) -> FactRow:
    keys = distinct_keys(before, after)
    # Rows of the base have different keys. Another number of rows cannot be without keys that are missing, extra or
    # there twice.
    are_distinguished = keys is not None or (bool(relation.keys) and comparison.candidate.view is View.MERGED)
    missing, extra = (None, None) if joined is None else joined.counts(sums_agree=before.content == after.content)
    return FactRow(
        unit=str(unit),
        comparison=comparison.name,
        base_rows=None if are_distinguished else before.content.rows,
        candidate_rows=after.content.rows,
        base_hash_a=f"{before.content.sum_a:016x}",
        candidate_hash_a=f"{after.content.sum_a:016x}",
        base_hash_b=f"{before.content.sum_b:016x}",
        candidate_hash_b=f"{after.content.sum_b:016x}",
        base_order=None if before.order is None else f"{before.order:016x}",
        candidate_order=None if after.order is None else f"{after.order:016x}",
        missing=missing,
        extra=extra,
        distinct_keys=after.content.rows - comparison.doubled[unit]
        if keys is None and unit in comparison.doubled
        else keys,
        expected_rows=comparison.rows[unit],
        unsound=None if "unsound" in relation.silent else after.unsound,
        misstated=comparison.misstated.get(unit),
        unreported=comparison.unreported.get(unit),
    )


def _version_row(target: TableVersion) -> FactRow:
    """The row counts of the whole version, as the version states them and as its files do. A reader that misses the
    same rows on both sides finds no difference, but is found here."""
    name = f"version {target.number}"
    return FactRow("table", name, candidate_rows=target.rows_listed, expected_rows=target.rows_stated)


def _status(results: Sequence[ExpectationResult]) -> CheckStatus:
    statuses = {result.status for result in results}
    return next((s for s in (CheckStatus.FAILED, CheckStatus.ERRORED) if s in statuses), CheckStatus.PASSED)
