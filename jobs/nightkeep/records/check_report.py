"""Results of a check or of a comparison of versions -> their JSON and text. Values only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nightkeep.card import render_card
from nightkeep.model import UnitKey
from nightkeep.records.codec import encode
from nightkeep.records.document import CheckStatus


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """The result of one expectation, over everything that was compared or, if it failed, in one unit."""

    name: str
    unit: str | None
    status: CheckStatus
    detail: str


Row = Mapping[str, object]
"""Values by column name, as in JSON: times in ISO 8601, bytes in hex, and as text the numbers that JSON cannot hold."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows of a unit that only one side has: their counts, and the first of them, sorted by their keys.

    A row that one side has n times more often counts n times and is listed once. There are keyed hashes of their keys,
    or `note` states why not; the rows themselves only for who may see values. `columns`: where both sides have rows (of
    the same key, in a table with keys), the columns in which those rows differ.
    """

    missing_count: int = 0
    extra_count: int = 0
    missing_rows: tuple[Row, ...] = ()
    extra_rows: tuple[Row, ...] = ()
    missing_keys: tuple[str, ...] = ()
    extra_keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    note: str | None = None

    def __str__(self) -> str:
        columns = f", different in {', '.join(self.columns)}" if self.columns else ""
        note = f"; {self.note}" if self.note else ""
        return "\n".join(
            [
                f"{self.missing_count} rows missing, {self.extra_count} extra{columns}{note}",
                *(f"    - {dict(row)}" for row in self.missing_rows),
                *(f"    - key {key}" for key in self.missing_keys if not self.missing_rows),
                *(f"    + {dict(row)}" for row in self.extra_rows),
                *(f"    + key {key}" for key in self.extra_keys if not self.extra_rows),
            ]
        )


@dataclass(frozen=True, slots=True)
class UnitDifference:
    """The rows that differ in one unit, in one comparison."""

    unit: UnitKey
    comparison: str
    difference: Difference


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """The version that was checked and its parent. `changes_rows`: whether its commit deletes or sets rows, so that
    both have other rows. `bytes`: of the data files of both, whole."""

    version: int
    parent: int
    changes_rows: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """How the check ended. `coverage` states how much was compared; `reason` states why nothing was, if nothing was.

    `identity` is the identity of the version that was checked. `compared` is None if nothing was compared.
    `validations`: the results in Great Expectations' own format.
    """

    status: CheckStatus
    coverage: str
    reason: str | None = None
    results: tuple[ExpectationResult, ...] = ()
    differences: tuple[UnitDifference, ...] = ()
    conflicted: bool = False
    seconds: float = 0.0
    identity: str | None = None
    compared: ComparedVersions | None = None
    validations: tuple[Mapping[str, object], ...] = ()

    def to_json(self) -> dict[str, object]:
        encoded: dict[str, object] = encode(self)
        return encoded

    def __str__(self) -> str:
        wrong = [result for result in self.results if result.status is not CheckStatus.PASSED]
        return "\n".join(
            [
                f"{self.status}: {self.reason or self.coverage}",
                *(f"  {r.status}: {r.unit or 'all units'}: {r.name}; {r.detail}" for r in wrong),
                *(f"  {d.unit}, {d.comparison}: {d.difference}" for d in self.differences),
            ]
        )

    def _repr_html_(self) -> str:
        rows = [(each.unit or "all units", each.name, each.status, each.detail) for each in self.results]
        differences = (f"{each.unit}, {each.comparison}: {each.difference}" for each in self.differences)
        sentences = (self.reason or self.coverage, *differences)
        return render_card(f"check: {self.status}", sentences, ("unit", "expectation", "status", "found"), rows)


@dataclass(frozen=True, slots=True)
class UnitDiff:
    """One unit at both versions. Row counts are None if both have the same files, which are not read then."""

    unit: UnitKey
    equal: bool
    rows: int | None
    other_rows: int | None
    difference: Difference


@dataclass(frozen=True, slots=True)
class DiffReport:
    """Rows of `version` that `other` lacks are missing; the reverse are extra. Units are sorted by key."""

    version: int
    other: int
    equal: bool
    units: tuple[UnitDiff, ...]
    notes: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, object]:
        encoded: dict[str, object] = encode(self)
        return encoded

    def __str__(self) -> str:
        same = sum(unit.equal for unit in self.units)
        return "\n".join(
            [
                f"version {self.version} and {self.other}: {same} of {len(self.units)} units are equal",
                *(f"  {unit.unit}: {unit.difference}" for unit in self.units if not unit.equal),
                *(f"  note: {note}" for note in self.notes),
            ]
        )

    def _repr_html_(self) -> str:
        rows = [(str(each.unit), "equal" if each.equal else str(each.difference)) for each in self.units]
        title = f"version {self.version} and {self.other}: {'equal' if self.equal else 'different'}"
        return render_card(title, self.notes, ("unit", "rows"), rows)
