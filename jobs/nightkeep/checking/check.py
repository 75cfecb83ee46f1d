"""A published version -> a comparison with its base and its parent -> CheckReport. Reads by address and number.

The check asks the gate's question again, after publishing and by other means: Spark SQL and Spark's readers instead of
our kernels, from the table's address and two numbers, without anything that the run remembers.

There are two comparisons of the touched units. First: the rows that readers see in the published version are those of
the planned version, merged on read. Second: the published version, merged, equals its parent, merged, so that nothing
of what others committed between plan and publication was lost. Units whose files did not change are not read.

Fingerprints are compared first. Once they differ, the check has failed, whatever becomes of the queries that explain
the difference. The caller stores the hold of a failed check before anything else, so that a crash after that point
leaves a table that no run touches. A crash before it leaves a document with `not_run` or `errored`: the version
counts as unchecked, no version that a check still needs expires, and a retry or `check_group` asks again. A version
that another writer replaced is conflicted, and one whose base has expired is skipped; neither is called passed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from nightkeep.checking.compared_sides import PUBLISHED, WHOLE, ComparedSides, compared
from nightkeep.checking.unique_keys import CountedKeys, declared_keys
from nightkeep.checking.unit_sample import bytes_of, sample
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.views import open_view
from nightkeep.model import UnitKey, View
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.check_report import CheckReport, ComparedVersions
from nightkeep.records.document import CheckStatus
from nightkeep.records.row_evidence import with_hashes
from nightkeep.spark.query_settings import planned_for
from nightkeep.spark.view import Side, TableVersion, TableView, UnitState, gone_meanwhile, replaced
from nightkeep.surprises import guarded, sentence


def check(request: CheckRequest, *, spark: SparkSession) -> CheckReport:
    """Check one published version in Spark. Always returns a report, as the caller must store what is known of it.

    A check that could not be carried out is `errored`; that proves nothing about the rows.
    """
    started = time.perf_counter()
    report = guarded(
        lambda: _check(open_view(request.address, spark), request, spark),
        _unfinished,
        f"check of {request.address.name}",
    )
    return replace(report, seconds=time.perf_counter() - started)


def _unfinished(failure: Exception) -> CheckReport:
    """The report of a check that this failure ended."""
    if isinstance(failure, RefusedTable):
        return _skipped(str(failure))
    # After a UsageError, Spark was started in a wrong way; the table is not at fault.
    read = "nothing was read" if isinstance(failure, UsageError) else "no comparison was finished"
    return CheckReport(CheckStatus.ERRORED, read, sentence(failure))


def _check(relation: TableView, request: CheckRequest, spark: SparkSession) -> CheckReport:
    loaded = _loaded(relation, request)
    if isinstance(loaded, CheckReport):
        return loaded
    target, base, parent = loaded
    touched = sorted(target.touched | changed_units(parent, target))
    chosen = sample(touched, base, target, request.byte_budget)
    published, whole = _comparisons(relation, base, parent, target, chosen)
    joined = sample(chosen, base, target, request.join_budget) if request.join_budget is not None else ()
    keys = CountedKeys(declared_keys(relation, request.keys), sample(chosen, base, target, request.keys_budget))
    with planned_for(spark, base.rows_listed + parent.rows_listed + 2 * target.rows_listed):
        report = compared(relation, (published, whole), target, joined, keys)
    report = replace(report, differences=with_hashes(report.differences, relation.keys, request.evidence))
    # If the version was removed during the check, its files are missing, and a difference proves nothing.
    gone = _gone(relation, target) if report.status is CheckStatus.FAILED else None
    identity = None if target.identity is None else str(target.identity)
    if gone:
        return _replaced(gone)
    parts = [
        _coverage(relation, base, target, touched, chosen, joined),
        keys.coverage(relation, chosen),
        report.coverage,
    ]
    coverage = "; ".join(filter(None, parts))
    return replace(report, coverage=coverage, identity=identity, compared=_named(parent, target))


def _gone(relation: TableView, target: TableVersion) -> str | None:
    """Why the version is no longer there. None also if that cannot be looked up: a difference holds the table."""
    return guarded(lambda: gone_meanwhile(relation, target), lambda _: None, f"version {target.number} after its check")


def _named(parent: TableVersion, target: TableVersion) -> ComparedVersions:
    changes = target.deletes is not None or bool(target.sets) or target.expiry_clock is not None
    size = sum(state.bytes for version in (parent, target) for state in version.units.values())
    return ComparedVersions(target.number, parent.number, changes, size)


def _loaded(
    relation: TableView, request: CheckRequest
) -> tuple[TableVersion, TableVersion, TableVersion] | CheckReport:
    """The version, its base and its parent; or a report that states why nothing can be compared."""
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
) -> tuple[ComparedSides, ComparedSides]:
    states = {unit: target.units.get(unit) for unit in units}
    waiting = frozenset(name for state in states.values() if state for name in state.waiting)
    # The change that the commit states of the rows of the version before.
    changed = partial(
        Side, view=View.MERGED, deleted=target.deletes, sets=target.sets, expiry_clock=target.expiry_clock
    )
    published = ComparedSides(
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
    whole = ComparedSides(WHOLE, changed(parent.number), Side(target.number, View.MERGED), rest, dict.fromkeys(rest))
    return published, whole


def _coverage(
    relation: TableView,
    base: TableVersion,
    target: TableVersion,
    touched: Sequence[UnitKey],
    chosen: Sequence[UnitKey],
    joined: Sequence[UnitKey],
) -> str:
    alike = len(target.units.keys() - set(touched))
    read, of = bytes_of(chosen, base, target), bytes_of(touched, base, target)
    return "; ".join(
        [
            f"{len(chosen)} of {len(touched)} touched units compared, {read:,} of {of:,} bytes of their files",
            *([f"rows of {len(joined)} units joined"] if joined else []),
            f"{alike} units have the same files as in version {target.parent}",
            *relation.notes,
        ]
    )
