"""PolicyFile -> the policy in force for a table, with the origin of every value.

Layers merge field by field, nested blocks too: built-in < preset < defaults < patterns < table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from nightkeep.errors import AddressError, PolicyError, did_you_mean
from nightkeep.model import Address, Operation
from nightkeep.model.own_expectations import OwnRequest
from nightkeep.model.prices import Prices
from nightkeep.policy.address import FORMATS, is_address, metastore_address, names_of, parse_address, same_place
from nightkeep.policy.document import Discovery
from nightkeep.policy.files import beside
from nightkeep.policy.format_fit import require_fit
from nightkeep.policy.layers import BUILT_IN, CALL, Layer, Origin
from nightkeep.policy.setting_types import AuditBudget, Budget, ReportSettings
from nightkeep.policy.settings import PRESETS, Preset, Settings, suited
from nightkeep.policy.units import Window
from nightkeep.policy.when import Condition

_GRANTS: Final = frozenset({"sweep.mode", "sweep.outside", "expire.enabled"})
"""What deletes. For a table that was only found, `defaults` do not set it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A layer for every name that `glob` matches (case counts; `*` also spans dots), or the `fault` that it has.

    `only` is the file whose tables it is for; None for all tables. `budget`: what these may cost together.
    """

    glob: str
    layer: Layer | None
    origin: Origin
    only: str | None = None
    fault: str = ""
    budget: Budget | None = None

    @property
    def specificity(self) -> tuple[int, int]:
        """A sort key, larger for a more specific pattern: more literal characters, then fewer `*`."""
        literal = re.sub(r"\[[^]]*\]|[*?]", "", self.glob)
        return (len(literal), -self.glob.count("*"))

    def matches(self, names: Sequence[str], file: str | None) -> bool:
        """Whether it is for a table of `file` that has one of these names."""
        return self.only in (None, file) and any(fnmatchcase(name, self.glob) for name in names)


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """A table: its address, which includes its name, and its own layer, None for a table that was found.

    `origin` is its entry, or the entry of `discover` that found it; `found_in` identifies it.
    """

    address: Address
    layer: Layer | None
    origin: Origin
    found_in: str | None = None

    @property
    def name(self) -> str:
        return self.address.name


@dataclass(frozen=True, slots=True)
class UnusableTable:
    """A table without a valid policy. `fault` states why; `format` is the beginning of its address.

    `address` is None if it is not known. Where the tables are not known, it stands for the entry or the file that
    would have named them.
    """

    name: str
    format: str
    fault: str
    address: Address | None = None
    found_in: str | None = None


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The policy in force for one table. `origins` has an entry for every dotted key of `settings`.

    `uncovered`: the table was only found. No entry and no pattern asks to maintain it.
    """

    address: Address
    settings: Settings
    origins: Mapping[str, Origin]
    uncovered: bool = False

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations to run, in order: those of the policy, or else all of the format. Some of the latter may not
        suit."""
        own = tuple(map(Operation, self.settings.operations or ()))
        return own or suited(self.address.format)

    def condition(self, operation: Operation) -> Condition | None:
        """On which health of the table a night does this operation; None for on any."""
        return None if self.settings.when is None else self.settings.when.of(operation)

    def window(self, operation: Operation) -> Window | None:
        """When a run of this operation may start; None for at any time."""
        return None if self.settings.window is None else self.settings.window.of(operation)

    def own_request(self, commits: Sequence[tuple[int, int | None]]) -> OwnRequest | None:
        """What to ask of versions with their parents; None if the policy expects nothing."""
        # Suites are read with their layers.
        asked, check = self.settings.expectations, self.settings.check
        if not isinstance(asked, tuple) or not asked:
            return None
        return OwnRequest(self.address, asked, tuple(commits), check.expectations_on, check.evidence)

    @property
    def results_context(self) -> str | None:
        """The folder of the team's project of Great Expectations; None where the policy names none."""
        named = self.settings.check.results_context
        if named is None:
            return None
        file = self.origins["check.results_context"].file
        return named if file is None else beside(file, named)

    def overridden(self, values: Mapping[str, object]) -> EffectivePolicy:
        """The policy with these settings of a call in place of its own."""
        origins = {**self.origins, **dict.fromkeys(values, CALL)}
        settings = self.settings.model_copy(update=dict(values))
        return replace(self, settings=settings, origins=MappingProxyType(origins))

    def is_of_call(self, key: str) -> bool:
        """Whether the call set this setting, in place of the policy's files."""
        return self.origins.get(key) == CALL

    def __reduce__(self) -> tuple[type[EffectivePolicy], tuple[Address, Settings, dict[str, Origin], bool]]:
        # MappingProxyType does not pickle, and another process may need the policy.
        return (EffectivePolicy, (self.address, self.settings, dict(self.origins), self.uncovered))


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A loaded tables.yaml and the files that it imports: tables in the order of the files, patterns from least to most
    specific.

    `unusable` are tables without a valid policy; `effective` raises for them. `discoveries` are places where more
    tables may be found. `warnings` are about what has no effect.
    """

    file: str
    tables: tuple[TablePolicy, ...]
    tables_per_session: int
    defaults: Layer
    patterns: tuple[Pattern, ...]
    unusable: tuple[UnusableTable, ...] = ()
    discoveries: tuple[Discovery, ...] = ()
    warnings: tuple[str, ...] = ()
    budget: Budget | None = None
    """What a night may cost."""
    audit_budget: AuditBudget | None = None
    """What the audits of one run may take."""
    prices: Prices | None = None
    """What storage, requests and work cost."""
    reports: ReportSettings = field(default_factory=ReportSettings)
    """What becomes of documents, pages and results."""
    located: Mapping[str, str] = field(default_factory=dict)
    """The places of tables that metastores name, by the tables' addresses."""

    def effective(self, table: str) -> EffectivePolicy:
        """The policy for a name of this file, or for an address relative to the working folder.

        An address that the file lists means that table. For any other address, the defaults apply and the patterns that
        match `database.table` or `table`, its last path components without `.db`. Raises AddressError for a name that
        is not in the file, and PolicyError for a table without a valid policy.
        """
        listed = next((entry for entry in self.tables if entry.name == table), None)
        if listed is not None:
            return self.of_table(listed)
        for each in self.unusable:
            if each.name == table or (str(each.address) == table and metastore_address(table)):
                raise PolicyError(each.fault)
        if not is_address(table):
            raise AddressError(self._unknown(table, (entry.name for entry in self.tables)))
        try:
            address = parse_address(table, os.getcwd())
        except AddressError as error:
            raise AddressError(f"{table}: expected {error}") from error
        placed = replace(address, location=self.located.get(str(address), address.location))
        for entry in self.tables:
            if same_place(entry.address) == same_place(placed):
                return self.of_table(entry)
        matching = self._matching(names_of(address), None)
        return _effective(placed, [self.defaults, *matching])

    def of_table(self, entry: TablePolicy) -> EffectivePolicy:
        """The policy for one of `tables`. Raises PolicyError."""
        matching = self._matching((entry.name,), entry.origin.file)
        if entry.layer is not None:
            return _effective(entry.address, [self.defaults, *matching, entry.layer])
        found = _effective(entry.address, [_without_grants(self.defaults), *matching])
        return replace(found, uncovered=not matching)

    def covered_by(self, entry: TablePolicy) -> tuple[Origin, ...]:
        """The patterns, and the entry itself, that ask to maintain one of `tables`."""
        matching = self._matching((entry.name,), entry.origin.file)
        return tuple(layer.origin for layer in (*matching, *([entry.layer] if entry.layer else [])))

    def with_tables(self, tables: Sequence[TablePolicy], unusable: Sequence[UnusableTable]) -> PolicyFile:
        """The policy file with more tables. Tables without a valid policy are moved to `unusable`: their settings do
        not fit their format, or a faulty pattern matches them."""
        fitting, misfits = list[TablePolicy](), list[UnusableTable]()
        for table in tables:
            try:
                self.of_table(table)
                fitting.append(table)
            except PolicyError as error:
                address = table.address
                misfits.append(UnusableTable(table.name, address.format, str(error), address, table.found_in))
        return replace(self, tables=(*self.tables, *fitting), unusable=(*self.unusable, *unusable, *misfits))

    def with_locations(self, located: Mapping[str, str], unknown: Sequence[UnusableTable]) -> PolicyFile:
        """The policy file with the places of tables, by the addresses that name them, and those that have none."""
        lost = {each.name for each in unknown}
        tables = [
            replace(each, address=replace(each.address, location=located.get(str(each.address), each.address.location)))
            for each in self.tables
            if each.name not in lost
        ]
        whole = {**self.located, **located}
        return replace(self, tables=tuple(tables), unusable=(*self.unusable, *unknown), located=whole)

    def _matching(self, names: Sequence[str], file: str | None) -> list[Layer]:
        """The layers of the patterns for a table. Raises PolicyError for a faulty one: half a policy is none."""
        matching = [pattern for pattern in self.patterns if pattern.matches(names, file)]
        faults = [pattern.fault for pattern in matching if pattern.fault]
        if faults:
            raise PolicyError("\n".join(faults))
        return [pattern.layer for pattern in matching if pattern.layer is not None]

    def _unknown(self, table: str, names: Iterable[str]) -> str:
        kind, colon, location = table.partition(":")
        hint = did_you_mean(table, names) or (
            did_you_mean(kind, FORMATS, lambda near: f"{near}:{location}") if colon else ""
        )
        # A table of a place that cannot be listed may well be there.
        unlisted = "".join(f"; {each.fault}" for each in self.unusable if each.found_in and each.address is None)
        return (
            f"{table}: expected a name of {self.file} or an address such as paimon:/path, found neither{hint}{unlisted}"
        )


def _effective(address: Address, layers: Sequence[Layer]) -> EffectivePolicy:
    merged = _merge(layers)
    settings = _built({key: value for key, (value, _) in merged.items()})
    origins = {key: origin for key, (_, origin) in merged.items()}
    require_fit(address, settings, origins)
    return EffectivePolicy(address, settings, MappingProxyType(origins))


def _without_grants(layer: Layer) -> Layer:
    return replace(layer, values={key: value for key, value in layer.values.items() if key not in _GRANTS})


def _merge(layers: Sequence[Layer]) -> dict[str, tuple[object, Origin]]:
    merged: dict[str, tuple[object, Origin]] = {key: (value, Origin("built-in")) for key, value in BUILT_IN.items()}
    explicit = {key: setting for layer in layers for key, setting in layer.values.items()}
    value, chosen = explicit.get("preset", merged["preset"])
    preset = Preset(str(value))
    below = Origin(f"preset {preset}", chosen.file, chosen.line)
    return merged | {key: (value, below) for key, value in PRESETS[preset].items()} | explicit


def _built(values: Mapping[str, object]) -> Settings:
    """Settings from values that are already checked: each layer is checked when it is read."""
    nested: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        block, _, field = key.rpartition(".")
        nested.setdefault(block, {})[field] = value
    top = Settings()
    blocks = {name: getattr(top, name).model_copy(update=nested[name]) for name in nested if name}
    return top.model_copy(update=nested[""] | blocks)
