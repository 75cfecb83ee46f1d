"""A published version and the expectations of its policy -> OwnReport. What failed before as well is not our fault.

The rows are those that readers of the version see, through the same view on Spark as the check's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nightkeep.checking.asked_rows import Answer, Answers, ask
from nightkeep.checking.check import changed_units
from nightkeep.errors import RefusedTable
from nightkeep.formats.views import open_view
from nightkeep.model import UnitKey
from nightkeep.model.own_expectations import ExpectedOn, OwnRequest
from nightkeep.records.document import CheckStatus
from nightkeep.records.own_report import OwnReport, OwnResult
from nightkeep.spark.view import Side, TableView, column

_Commit = tuple[int, int | None]


def expect_own(request: OwnRequest, *, spark: SparkSession) -> OwnReport:
    """Ask the expectations of the last version; of those that fail, find the commit since which they do."""
    started = time.perf_counter()
    try:
        relation = open_view(request.address, spark)
    except RefusedTable as refusal:
        return OwnReport(reason=f"no expectation of the policy was asked: {refusal}")
    commits = _commits(relation, request)
    asked = _Versions(relation, request, _units(relation, request, commits), spark)
    validation = asked.ask(commits[-1][0], range(len(request.expectations)))
    if validation is None:
        gone = f"no expectation of the policy was asked: version {commits[-1][0]} does not exist any more"
        return OwnReport(reason=gone)
    results = tuple(_result(asked, commits, number) for number in range(len(request.expectations)))
    seconds, shown = time.perf_counter() - started, asked.shown
    return OwnReport(
        results, seconds=seconds, validations=(validation,), shown=() if shown is None else (shown.validation,)
    )


class _Versions:
    """The answers of versions, each expectation asked once of each. `shown`: those of the last version with values of
    rows, where they are asked for."""

    def __init__(
        self, relation: TableView, request: OwnRequest, units: frozenset[UnitKey] | None, spark: SparkSession
    ) -> None:
        self._relation, self._request, self._units, self._spark = relation, request, units, spark
        self._answers: dict[tuple[int, int], Answer] = {}
        self.shown: Answers | None = None
        self._failing: tuple[int, ...] = ()

    def ask(self, version: int, numbers: Sequence[int]) -> dict[str, Any] | None:
        """Ask expectations, by their numbers. None if the version does not exist any more."""
        loaded = self._relation.version(version)
        if loaded is None:
            return None
        units = sorted(loaded.units.keys() if self._units is None else loaded.units.keys() & self._units)
        expectations = [self._request.expectations[number] for number in numbers]
        bare, shown = ask(self._rows(version, units), expectations, self._request.evidence)
        if not self._answers and shown is not None:
            self.shown = replace(shown, validation=_named(shown.validation, self._request, version))
        self._answers |= {(version, number): answer for number, answer in zip(numbers, bare.each, strict=True)}
        if not self._failing:
            self._failing = tuple(n for n in numbers if self._answers[version, n].status is CheckStatus.FAILED)
        return _named(bare.validation, self._request, version)

    def answer(self, version: int, number: int) -> Answer | None:
        """The answer of one of the expectations that failed first, or of one that was asked before."""
        if (version, number) not in self._answers:
            self.ask(version, self._failing)
        return self._answers.get((version, number))

    def _rows(self, version: int, units: Sequence[UnitKey]) -> DataFrame:
        fields = self._relation.schema.fields
        if not units:
            return self._spark.createDataFrame([], self._relation.schema)
        payload = {column(i): F.col(column(i)) for i in range(len(fields))}
        rows = self._relation.rows(Side(version, self._relation.published), units, payload=payload)
        return rows.select(*(F.col(column(i)).alias(field.name) for i, field in enumerate(fields)))


def _commits(relation: TableView, request: OwnRequest) -> tuple[_Commit, ...]:
    commits = request.commits or ((relation.latest(), None),)
    return tuple((version, _parent(relation, version) if parent is None else parent) for version, parent in commits)


def _parent(relation: TableView, version: int) -> int | None:
    loaded = relation.version(version)
    return None if loaded is None else loaded.parent


def _units(relation: TableView, request: OwnRequest, commits: Sequence[_Commit]) -> frozenset[UnitKey] | None:
    """The units that the commits changed, as far as the versions still exist; None for all units."""
    if request.on is ExpectedOn.ALL:
        return None
    changed = set[UnitKey]()
    for version, parent in commits:
        after, before = (None if number is None else relation.version(number) for number in (version, parent))
        changed |= after.touched if after else frozenset()
        changed |= changed_units(before, after) if before and after else set()
    return frozenset(changed)


def _result(asked: _Versions, commits: Sequence[_Commit], number: int) -> OwnResult:
    expectation = asked._request.expectations[number]
    answer = asked.answer(commits[-1][0], number)
    assert answer is not None
    shown = answer.detail if asked.shown is None else asked.shown.each[number].detail
    result = OwnResult(expectation, answer.status, answer.detail, shown)
    if answer.status is not CheckStatus.FAILED:
        return result
    since, note = _since(asked, commits, number)
    return replace(result, detail=f"{answer.detail}; {note}", shown=f"{shown}; {note}", since=since)


def _since(asked: _Versions, commits: Sequence[_Commit], number: int) -> tuple[_Commit | None, str]:
    """Our commit since which the expectation fails, or None, and a sentence on it."""

    def fails(version: int | None) -> bool:
        answer = None if version is None else asked.answer(version, number)
        return answer is not None and answer.status is CheckStatus.FAILED

    first = commits[0][1]
    if fails(first):
        return None, f"it fails in version {first}, the one before, as well: it is about the data, not about the commit"
    for place in range(len(commits) - 1, -1, -1):
        version, parent = commits[place]
        if not fails(parent):
            return (version, parent), f"it does not fail in version {parent}, the one before"
        if place and not fails(commits[place - 1][0]):
            return None, f"another writer's commit before version {version} broke it"
    return None, "it failed before as well"


def _named(validation: dict[str, Any], request: OwnRequest, version: int) -> dict[str, Any]:
    """The validation with the table and the version, and with a name of the suite that distinguishes tables."""
    meta: Mapping[str, Any] = validation.get("meta") or {}
    more = {"table": request.address.name, "version": version, "rows": request.on.value}
    return {**validation, "suite_name": f"{request.address.name}: policy", "meta": {**meta, "nightkeep": more}}
