"""nightkeep.tables and nightkeep.validate: a policy -> the tables that there are, and what is wrong with the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from nightkeep.api.call_context import find_context, require_policy
from nightkeep.card import render_card
from nightkeep.discovery import FoundOther, completed, find_tables, located_all
from nightkeep.errors import PolicyError, brief
from nightkeep.extras import EXTRAS
from nightkeep.groups.read_tables import faults_of_tables, refusals
from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages.text_table import aligned_lines
from nightkeep.policy import Pattern, PolicyFile, TablePolicy, UnusableTable, faults_of, load_usable
from nightkeep.records import last_outcomes
from nightkeep.redaction import redact

_HEAD = ("table", "covered by", "last outcome", "found in", "address")
_NAMED: Final = 20
"""Names of a place that a line lists. JSON has all."""


class ListedJson(TypedDict):
    """A row of `tables`: a table, or, with `ours` false, what a place names that is no table of ours, such as a view.
    `format` states what it is."""

    name: str
    table: str
    format: str
    found_in: str
    covered: bool
    covered_by: list[str]
    last_outcome: Outcome | None
    refused: str | None
    ours: NotRequired[bool]


class ValidationJson(TypedDict):
    """What `validate` found, a line each with file and line."""

    file: str
    faults: list[str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ListedPolicy:
    """One table that there is. `found_in` is the file that lists it, or the place of discover that has it.

    `covered_by` are the lines of the policy by which it is maintained; empty if it is only looked at.
    `refused` states why the table cannot be used; then it may also be a place whose tables are not known.
    """

    name: str
    table: str
    format: str
    found_in: str
    covered_by: tuple[str, ...] = ()
    last_outcome: Outcome | None = None
    refused: str | None = None

    def to_json(self) -> ListedJson:
        return {
            "name": self.name,
            "table": redact(self.table),
            "format": self.format,
            "found_in": self.found_in,
            "covered": bool(self.covered_by),
            "covered_by": list(self.covered_by),
            "last_outcome": self.last_outcome,
            "refused": None if self.refused is None else redact(self.refused),
        }


@dataclass(frozen=True, slots=True)
class ListedPolicies:
    """Every table that there is, in the order of the policy's files: first those that can be used.

    `others` are what places name that is no table of ours: views, and tables of other formats.
    """

    tables: tuple[ListedPolicy, ...]
    others: tuple[FoundOther, ...] = ()

    def __iter__(self) -> Iterator[ListedPolicy]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, place: int) -> ListedPolicy:
        return self.tables[place]

    def to_json(self) -> list[ListedJson]:
        return [*(each.to_json() for each in self.tables), *map(_other, self.others)]

    def __str__(self) -> str:
        lines = aligned_lines([_HEAD, *map(_row, self.tables)])
        uncovered = sum(not each.covered_by and each.refused is None for each in self.tables)
        refused = [f"{each.name}: refused: {redact(each.refused)}" for each in self.tables if each.refused is not None]
        usable = counted(len(self.tables) - len(refused), "table")
        count = f"{usable}, {uncovered} of them only looked at, {len(refused)} refused"
        return "\n".join([*(line.rstrip() for line in lines), *refused, *_counted(self.others), count])

    def _repr_html_(self) -> str:
        return render_card("tables", (), _HEAD, [_row(each) for each in self.tables])


@dataclass(frozen=True, slots=True)
class Validation:
    """What is wrong with a policy, a line each with file and line, and what has no effect."""

    file: str
    faults: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> ValidationJson:
        return {"file": self.file, "faults": list(self.faults), "warnings": list(self.warnings)}

    def __str__(self) -> str:
        lines = [*self.faults, *(f"warning: {each}" for each in self.warnings)]
        return "\n".join(lines) or f"{self.file}: no fault"

    def _repr_html_(self) -> str:
        return render_card(self.file, str(self).split("\n"))


def tables(*, policy: str | Path | None = None, reports: str | Path | None = None) -> ListedPolicies:
    """Every table that the policy lists or that is discovered, and those that cannot be used, with the reason."""
    require_policy(policy)
    context = find_context(policy, reports)
    found = find_tables(context.policy.discoveries)
    whole = completed(located_all(context.policy), found)
    last = last_outcomes(
        context.reports, [*(each.name for each in whole.tables), *(each.name for each in whole.unusable)]
    )
    refused = _refusals(whole)
    usable = [replace(_listed(whole, each, last), refused=refused.get(each.name)) for each in whole.tables]
    return ListedPolicies((*usable, *(_refused(whole, each, last) for each in whole.unusable)), found.others)


def validate(*, tables: bool = False, policy: str | Path | None = None) -> Validation:
    """Every fault of the policy's files, and warnings about entries that match nothing: for these, places are listed.

    `tables`: open every table too, and report settings that do not fit it, such as unknown columns. A table that cannot
    be read is a warning.
    """
    file = require_policy(policy)
    try:
        loaded = load_usable(file)
    except PolicyError as failure:
        return Validation(str(file), tuple(str(failure).split("\n")), ())
    found = find_tables(loaded.discoveries)
    whole = completed(loaded, found)
    unlisted = tuple(each.why for each in found.unlistable)
    used = {table.found_in for table in found.tables} | {each.found_in for each in found.unlistable}
    empty = [
        f"{each.origin.file}:{each.origin.line}: {each.name}: no table is there, or none is included"
        for each in loaded.discoveries
        if each.name not in used
    ]
    idle = [_idle(each, unlisted) for each in whole.patterns if not each.fault and not _is_used(each, whole)]
    new = PolicyFile(
        file=loaded.file,
        tables=(),
        tables_per_session=1,
        defaults=loaded.defaults,
        patterns=loaded.patterns,
        unusable=tuple(each for each in whole.unusable if each.name not in {lost.name for lost in found.unlistable}),
    )
    faults, unread = _misfits(whole) if tables else ((), ())
    warnings = (*loaded.warnings, *_uncompared(whole), *unlisted, *empty, *idle, *unread)
    return Validation(str(file), (*faults_of(new), *faults), warnings)


def _refusals(whole: PolicyFile) -> Mapping[str, str | None]:
    """Why Delta tables are refused. Those of other formats need no look: no catalog but their own manages them."""
    policies = [whole.of_table(each) for each in whole.tables if each.address.format == "delta"]
    return {policy.address.name: why for policy, why in zip(policies, refusals(policies), strict=True)}


def _uncompared(whole: PolicyFile) -> Iterator[str]:
    """A warning for a policy with expectations where Great Expectations is not installed, as on a scheduler."""
    own = (*(each.layer for each in whole.patterns), *(each.layer for each in whole.tables))
    layers = (whole.defaults, *(layer for layer in own if layer is not None))
    asked = [layer.values["expectations"][1] for layer in layers if "expectations" in layer.values]
    if asked and find_spec("great_expectations") is None:
        first = asked[0]
        yield (
            f"{first.file}:{first.line}: expectations: not compared with the schemas of Great Expectations, which is "
            f'not installed here (the extra "{EXTRAS["great_expectations"]}")'
        )


def _misfits(whole: PolicyFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Faults of settings that do not fit their tables, each once, and warnings about tables that cannot be read."""
    policies = [whole.of_table(each) for each in whole.tables]
    found = list(zip(policies, faults_of_tables(policies), strict=True))
    faults = dict.fromkeys(line for _, each in found for line in each.faults)
    unread = (f"{policy.address.name}: not read: {each.unread}" for policy, each in found if each.unread is not None)
    return tuple(faults), tuple(unread)


def _is_used(pattern: Pattern, whole: PolicyFile) -> bool:
    if any(pattern.matches((table.name,), table.origin.file) for table in whole.tables):
        return True
    return any(fnmatchcase(table.name, pattern.glob) for table in whole.unusable)


def _idle(pattern: Pattern, unlisted: Sequence[str]) -> str:
    origin = pattern.origin
    among = " that could be listed" if unlisted else ""
    return f"{origin.file}:{origin.line}: pattern {pattern.glob}: it matches no table{among}"


def _listed(whole: PolicyFile, table: TablePolicy, last: Mapping[str, Outcome]) -> ListedPolicy:
    covered = tuple(map(str, whole.covered_by(table)))
    found_in = table.found_in or f"{table.origin.file}:{table.origin.line}"
    address = table.address
    return ListedPolicy(table.name, str(address), address.format, found_in, covered, last.get(table.name))


def _refused(whole: PolicyFile, table: UnusableTable, last: Mapping[str, Outcome]) -> ListedPolicy:
    address = "" if table.address is None else str(table.address)
    found_in = table.found_in or whole.file
    return ListedPolicy(table.name, address, table.format, found_in, (), last.get(table.name), table.fault)


def _other(other: FoundOther) -> ListedJson:
    return {
        "name": other.name,
        "table": "",
        "format": other.kind,
        "found_in": other.found_in,
        "covered": False,
        "covered_by": [],
        "last_outcome": None,
        "refused": None,
        "ours": False,
    }


def _counted(others: Sequence[FoundOther]) -> list[str]:
    """A line for each place: how many of what is there is not ours, and the first names."""
    places: dict[str, list[str]] = {}
    for each in others:
        places.setdefault(each.found_in, []).append(f"{brief(each.name)} ({each.kind})")
    return [
        f"{place}: {len(named)} not ours: {', '.join(named[:_NAMED])}{', ...' if len(named) > _NAMED else ''}"
        for place, named in places.items()
    ]


def _row(each: ListedPolicy) -> tuple[str, ...]:
    covered = "refused" if each.refused is not None else ", ".join(map(_layer, each.covered_by)) or "nothing"
    return (each.name, covered, str(each.last_outcome or "-"), each.found_in, redact(each.table))


def _layer(origin: str) -> str:
    """The layer of an origin, without its file and line."""
    return origin.rpartition("  ")[2]
