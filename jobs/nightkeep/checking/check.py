"""A published version -> a comparison with its base and its parent -> CheckReport. Reads by address and number.

There are two comparisons of the touched units. First: the rows that readers see in the published version are those of
the planned version, merged on read. Second: the published version, merged, equals its parent, merged. Units whose files
did not change are not read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from nightkeep.causes import failure_text
from nightkeep.checking.evidence import without_values
from nightkeep.checking.expectations import FactRow, expect
from nightkeep.checking.unique_keys import CountedKeys, distinct_keys, shared, told_keys
from nightkeep.checking.unit_fingerprints import ComparedRows, UnitFacts, compare_rows, measure
from nightkeep.checking.unit_sample import bytes_of, sample
from nightkeep.errors import NightkeepError, RefusedTable, UsageError
from nightkeep.model import UnitKey, View
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.reports.check_report import (
    CheckReport,
    ComparedVersions,
    ExpectationResult,
    UnitDifference,
)
from nightkeep.reports.document import CheckStatus
from nightkeep.spark.query_settings import planned_for
from nightkeep.spark.view import Side, TableVersion, TableView, UnitState, gone_meanwhile, open_view, replaced


def check(request: CheckRequest, *, spark: SparkSession) -> CheckReport:
    """Check one published version in Spark. Always returns a report, as the caller must store what is known of it.

    A check that could not be carried out is `errored`; that says nothing about the rows.
    """
    started = time.perf_counter()
    try:
        report = _check(open_view(request.address, spark), request, spark)
    except RefusedTable as refusal:
        report = _skipped(str(refusal))
    except UsageError as failure:
        # Spark was started in a wrong way; the table is not at fault.
        report = CheckReport(CheckStatus.ERRORED, "nothing was read", str(failure))
    except Exception as failure:  # noqa: BLE001 -- Spark's own errors have no common root, and none is to be lost
        _log.info("check of %s", request.address.name, exc_info=True)
        report = CheckReport(CheckStatus.ERRORED, "no comparison was finished", _surprise(failure))
    return replace(report, seconds=time.perf_counter() - started)


def _surprise(failure: Exception) -> str:
    return str(failure) if isinstance(failure, NightkeepError) else failure_text(failure, _LONGEST)


_log: Final = logging.getLogger(__name__)
_LONGEST: Final = 500

PUBLISHED, WHOLE = "published", "whole"
_NOT_JOINED: Final = "rows are joined where their hashes differ, and none do; check.join_budget asks for more"
_SHARED: Final = "rows of the version before share keys as well"
_SILENT: Final = {
    "base_rows": "rows have keys: one that is missing, extra or there twice is told as such",
    "missing": _NOT_JOINED,
    "extra": _NOT_JOINED,
    "distinct_keys": "readers merge the rows of a key, so that none shows twice",
    "misstated": "no new file has statistics",
    "base_order": "readers are promised no order of rows",
}
"""Why a comparison may have no fact of that name, in any format."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Both sides of some units. `rows`: row counts of the candidate by metadata, None if metadata does not state them.

    `misstated`: the number of columns with wrong statistics, for each unit that has new statistics. `untold`: the
    number of changes that streaming readers are told wrongly or not at all, for each unit that tells changes.
    """

    name: str
    base: Side
    candidate: Side
    units: tuple[UnitKey, ...]
    rows: Mapping[UnitKey, int | None]
    misstated: Mapping[UnitKey, int] = field(default_factory=dict)
    untold: Mapping[UnitKey, int] = field(default_factory=dict)


def _check(relation: TableView, request: CheckRequest, spark: SparkSession) -> CheckReport:
    loaded = _loaded(relation, request)
    if isinstance(loaded, CheckReport):
        return loaded
    target, base, parent = loaded
    touched = sorted(target.touched | changed_units(parent, target))
    chosen = sample(touched, base, target, request.byte_budget)
    published, whole = _comparisons(relation, base, parent, target, chosen)
    joined = sample(chosen, base, target, request.join_budget) if request.join_budget is not None else ()
    keys = CountedKeys(told_keys(relation, request.keys), sample(chosen, base, target, request.keys_budget))
    with planned_for(spark, base.rows_listed + parent.rows_listed + 2 * target.rows_listed):
        report = _compared(relation, (published, whole), target, joined, keys)
    if request.evidence is Evidence.KEYS:
        report = replace(report, differences=without_values(report.differences, relation.keys))
    # If the version was removed during the check, its files are missing, and a difference proves nothing.
    gone = gone_meanwhile(relation, target) if report.status is CheckStatus.FAILED else None
    identity = None if target.identity is None else str(target.identity)
    if gone:
        return _replaced(gone)
    said = [_coverage(relation, base, target, touched, chosen, joined), keys.said(relation, chosen), report.coverage]
    coverage = "; ".join(filter(None, said))
    return replace(report, coverage=coverage, identity=identity, compared=_named(parent, target))


def _named(parent: TableVersion, target: TableVersion) -> ComparedVersions:
    changes = target.deletes is not None or bool(target.sets) or target.expiry_clock is not None
    size = sum(state.bytes for version in (parent, target) for state in version.units.values())
    return ComparedVersions(target.number, parent.number, changes, size)


def _loaded(
    relation: TableView, request: CheckRequest
) -> tuple[TableVersion, TableVersion, TableVersion] | CheckReport:
    """The version, its base and its parent; or a report that says why nothing can be compared."""
    number = relation.latest() if request.version is None else request.version
    target = relation.version(number)
    if target is None:
        return _skipped(f"version {number} does not exist any more")
    if request.commit_user not in (None, target.author):
        reason = f"version {target.number}: expected the commit of {request.commit_user}, found {target.author}"
        return _replaced(reason)
    if target.changes_rows is not None:
        return _skipped(f"version {target.number} may change rows: {target.changes_rows}")
    parent = relation.version(target.parent)
    planned = None if relation.compares_with_parent else request.base_version
    base = parent if planned is None else relation.version(planned)
    if base is None or parent is None:
        gone = target.parent if parent is None else planned
        other = replaced(request.known, target)
        return _replaced(other) if other else _skipped(f"version {gone}, to compare with, does not exist any more")
    other = replaced(request.known, target, base, parent)
    return _replaced(other) if other else (target, base, parent)


def _replaced(reason: str) -> CheckReport:
    return replace(_skipped(reason), conflicted=True)


def _skipped(reason: str) -> CheckReport:
    return CheckReport(CheckStatus.SKIPPED, coverage="nothing was compared", reason=reason)


def changed_units(parent: TableVersion, target: TableVersion) -> set[UnitKey]:
    """Units whose data files or deletion vectors differ between the two versions."""
    keys = parent.units.keys() | target.units.keys()
    return {key for key in keys if not _same(parent.units.get(key), target.units.get(key))}


def _same(left: UnitState | None, right: UnitState | None) -> bool:
    return left is not None and right is not None and left.identity == right.identity


def _comparisons(
    relation: TableView, base: TableVersion, parent: TableVersion, target: TableVersion, units: tuple[UnitKey, ...]
) -> tuple[_Comparison, _Comparison]:
    states = {unit: target.units.get(unit) for unit in units}
    waiting = frozenset(name for state in states.values() if state for name in state.waiting)
    # What the commit says that it did to the rows of the version before.
    changed = partial(
        Side, view=View.MERGED, deleted=target.deletes, sets=target.sets, expiry_clock=target.expiry_clock
    )  # fmt: skip
    published = _Comparison(
        PUBLISHED,
        # Files that readers of the target do not see yet were not part of the work.
        changed(base.number, without=waiting),
        Side(target.number, relation.published),
        units,
        {unit: state.rows if state else 0 for unit, state in states.items()},
    )
    # In units without waiting files, merging shows what readers see. If base and parent agree there too, the second
    # comparison would repeat the first.
    settled = {unit for unit, state in states.items() if state is None or not state.waiting}
    proven = {u for u in settled if _same(base.units.get(u), parent.units.get(u))}
    # Where rows expire, merging with files that wait may make other rows of what is left; the work was not part of it.
    compared = units if target.expiry_clock is None else [unit for unit in units if unit in settled]
    rest = tuple(unit for unit in compared if unit not in proven)
    whole = _Comparison(WHOLE, changed(parent.number), Side(target.number, View.MERGED), rest, dict.fromkeys(rest))
    return published, whole


def _compared(
    relation: TableView, comparisons: Sequence[_Comparison], target: TableVersion, joined: Sequence[UnitKey],
    keys: CountedKeys,
) -> CheckReport:  # fmt: skip
    """The verdict on both comparisons. Rows of `joined` units are compared in the first one, even if sums agree."""
    rows: list[FactRow] = []
    differences: list[UnitDifference] = []
    silent = {**_SILENT, **relation.silent, **({"distinct_keys": _SHARED} if keys.names else {})}
    coverage = ""
    for comparison, before, after in _measured(relation, comparisons, target, keys):
        coverage = coverage or shared(keys.names, before.values())
        unequal = [unit for unit in comparison.units if before[unit].content != after[unit].content]
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
    return CheckReport(
        _status(results), coverage, results=results, differences=tuple(differences), validations=validation
    )


_Facts = Mapping[UnitKey, UnitFacts]


def _measured(
    relation: TableView, comparisons: Sequence[_Comparison], target: TableVersion, keys: CountedKeys
) -> Iterator[tuple[_Comparison, _Facts, _Facts]]:
    """Each comparison with the facts of its sides; the first one also with what the version states wrongly."""
    published, *others = comparisons
    sides = [(side, each.units) for each in comparisons for side in (each.base, each.candidate)]
    # Of a small query, Spark's planner takes most of the time, and it runs in the thread that asks.
    with ThreadPoolExecutor(max_workers=2) as threads:
        states = (relation.misstated, relation.untold)
        wrong = [threads.submit(state, target.number, target.parent, published.units) for state in states]
        measured = measure(relation, sides, keys=keys.names, keyed=keys.units)
        misstated, untold = (each.result() for each in wrong)
    compared = (replace(published, misstated=misstated, untold=untold), *others)
    yield from zip(compared, measured[::2], measured[1::2], strict=True)


def _fact_row(
    relation: TableView, comparison: _Comparison, unit: UnitKey, before: UnitFacts, after: UnitFacts,
    joined: ComparedRows | None,
) -> FactRow:  # fmt: skip
    keys = distinct_keys(before, after)
    # Rows of the base have different keys. Another number of rows cannot be without keys that are missing, extra or
    # there twice.
    are_told_apart = keys is not None or (bool(relation.keys) and comparison.candidate.view is View.MERGED)
    missing, extra = (None, None) if joined is None else joined.told(sums_agree=before.content == after.content)
    return FactRow(
        unit=str(unit),
        comparison=comparison.name,
        base_rows=None if are_told_apart else before.content.rows,
        candidate_rows=after.content.rows,
        base_hash_a=f"{before.content.sum_a:016x}",
        candidate_hash_a=f"{after.content.sum_a:016x}",
        base_hash_b=f"{before.content.sum_b:016x}",
        candidate_hash_b=f"{after.content.sum_b:016x}",
        base_order=None if before.order is None else f"{before.order:016x}",
        candidate_order=None if after.order is None else f"{after.order:016x}",
        missing=missing,
        extra=extra,
        distinct_keys=keys,
        expected_rows=comparison.rows[unit],
        unsound=None if "unsound" in relation.silent else after.unsound,
        misstated=comparison.misstated.get(unit),
        untold=comparison.untold.get(unit),
    )


def _version_row(target: TableVersion) -> FactRow:
    """The row counts of the whole version, as the version states them and as its files do. A reader that misses the
    same rows on both sides finds no difference, but is found here."""
    name = f"version {target.number}"
    return FactRow("table", name, candidate_rows=target.rows_listed, expected_rows=target.rows_stated)


def _status(results: Sequence[ExpectationResult]) -> CheckStatus:
    statuses = {result.status for result in results}
    return next((s for s in (CheckStatus.FAILED, CheckStatus.ERRORED) if s in statuses), CheckStatus.PASSED)


def _coverage(
    relation: TableView, base: TableVersion, target: TableVersion, touched: Sequence[UnitKey],
    chosen: Sequence[UnitKey], joined: Sequence[UnitKey],
) -> str:  # fmt: skip
    alike = len(target.units.keys() - set(touched))
    read, of = bytes_of(chosen, base, target), bytes_of(touched, base, target)
    return "; ".join([
        f"{len(chosen)} of {len(touched)} touched units compared, {read:,} of {of:,} bytes of their files",
        *([f"rows of {len(joined)} units joined"] if joined else []),
        f"{alike} units have the same files as in version {target.parent}",
        *relation.notes,
    ])  # fmt: skip
