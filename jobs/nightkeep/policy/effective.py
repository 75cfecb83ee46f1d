"""tables.yaml -> the policy in force for a table, with the origin of every value.

Layers merge field by field, nested blocks too: built-in < preset < defaults < patterns < table.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from nightkeep.errors import AddressError, PolicyError
from nightkeep.model import Address, Operation
from nightkeep.model.own_expectations import OwnRequest
from nightkeep.policy.address import format_of, is_address, names_of, parse_address, same_place, substitute
from nightkeep.policy.layers import BUILT_IN, Layer, Origin, layer_of
from nightkeep.policy.settings import PRESETS, Document, Preset, Settings, TableEntry, floor_ms, suited
from nightkeep.policy.units import format_duration
from nightkeep.policy.validation_messages import explain_faults
from nightkeep.policy.when import Condition
from nightkeep.policy.yaml_source import Location, YamlDocument, parse


@dataclass(frozen=True, slots=True)
class Pattern:
    """A layer for every name that `glob` matches (case counts; `*` also spans dots)."""

    glob: str
    layer: Layer

    @property
    def specificity(self) -> tuple[int, int]:
        """A sort key, larger for a more specific pattern: more literal characters, then fewer `*`."""
        literal = re.sub(r"\[[^]]*\]|[*?]", "", self.glob)
        return (len(literal), -self.glob.count("*"))


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """An entry of `tables`: its address, which includes its name, and its own layer."""

    address: Address
    layer: Layer
    line: int

    @property
    def name(self) -> str:
        return self.address.name


@dataclass(frozen=True, slots=True)
class UnusableTable:
    """An entry of `tables` without a valid policy. `fault` says why; `format` is the beginning of its address."""

    name: str
    format: str
    fault: str


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The policy in force for one table. `origins` has an entry for every dotted key of `settings`."""

    address: Address
    settings: Settings
    origins: Mapping[str, Origin]

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations to run, in order: those of the policy, else all of the format, of which some may not suit."""
        own = tuple(map(Operation, self.settings.operations or ()))
        return own or suited(self.address.format)

    def condition(self, operation: Operation) -> Condition | None:
        """On which health of the table a night does this operation; None for on any."""
        return None if self.settings.when is None else self.settings.when.of(operation)

    def own_request(self, commits: Sequence[tuple[int, int | None]]) -> OwnRequest | None:
        """What to ask of versions with their parents; None if the policy expects nothing."""
        # Suites are read with their layers.
        asked, check = self.settings.expectations, self.settings.check
        if not isinstance(asked, tuple) or not asked:
            return None
        return OwnRequest(self.address, asked, tuple(commits), check.expectations_on, check.evidence)

    def __reduce__(self) -> tuple[type[EffectivePolicy], tuple[Address, Settings, dict[str, Origin]]]:
        # MappingProxyType does not pickle, and another process may need the policy.
        return (EffectivePolicy, (self.address, self.settings, dict(self.origins)))


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A loaded tables.yaml: tables in the order of the file, patterns from least to most specific.

    `unusable` are tables without a valid policy; `effective` raises for them.
    """

    file: str
    tables: tuple[TablePolicy, ...]
    tables_per_session: int
    defaults: Layer
    patterns: tuple[Pattern, ...]
    unusable: tuple[UnusableTable, ...] = ()

    def effective(self, table: str) -> EffectivePolicy:
        """The policy for a name of this file, or for an address relative to the working folder.

        An address that the file lists means that table. For any other address, the defaults apply and the patterns that
        match `database.table` or `table`, its last path components without `.db`. Raises AddressError for a name that
        is not in the file, and PolicyError for a sweep of too young files.
        """
        listed = {entry.name: entry for entry in self.tables}
        if table in listed:
            return self._effective(listed[table].address, (table,), listed[table].layer)
        for each in self.unusable:
            if each.name == table:
                raise PolicyError(each.fault)
        if not is_address(table):
            raise AddressError(self._unknown(table, listed))
        try:
            address = parse_address(table, os.getcwd())
        except AddressError as error:
            raise AddressError(f"{table}: expected {error}") from error
        for entry in self.tables:
            if same_place(entry.address) == same_place(address):
                return self._effective(entry.address, (entry.name,), entry.layer)
        return self._effective(address, names_of(address), None)

    def _effective(self, address: Address, names: Sequence[str], own: Layer | None) -> EffectivePolicy:
        matching = [p.layer for p in self.patterns if any(fnmatchcase(name, p.glob) for name in names)]
        merged = _merge([self.defaults, *matching, *([own] if own else [])])
        settings = _built({key: value for key, (value, _) in merged.items()})
        origins = {key: origin for key, (_, origin) in merged.items()}
        _require_age(address, settings, origins["sweep.older_than"])
        return EffectivePolicy(address, settings, MappingProxyType(origins))

    def _unknown(self, table: str, names: Iterable[str]) -> str:
        nearest = difflib.get_close_matches(table, list(names), n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        return f"{table}: expected a name of {self.file} or an address such as paimon:/path, found neither{hint}"


def load(path: str | Path, *, text: str | None = None, environ: Mapping[str, str] | None = None) -> PolicyFile:
    """The policy in the file `path`, or in `text` instead of its content (`version: 1` is a complete policy).

    `environ` has the variables of addresses; None means the process environment. Every layer is checked, used or not.
    Raises PolicyError with one line per fault, each starting with file:line.
    """
    policy = load_usable(path, text=text, environ=environ)
    if policy.unusable:
        raise PolicyError("\n".join(each.fault for each in policy.unusable))
    return policy


def load_usable(path: str | Path, *, text: str | None = None, environ: Mapping[str, str] | None = None) -> PolicyFile:
    """As `load`, but a table without a valid policy goes to `unusable`, so that work on the other tables can go on.

    An example is an address with an unset variable. Raises PolicyError for faults of the file as a whole."""
    file = str(path)
    source = parse(_read(file) if text is None else text, file)
    try:
        document = Document.model_validate({k: v for k, v in source.values.items() if v is not None})
    except ValidationError as error:
        raise PolicyError(explain_faults(error, source)) from error
    tables, unusable = _tables(document, source, os.environ if environ is None else environ)
    patterns = [
        Pattern(entry.match, layer_of(f"pattern {entry.match}", entry, ("patterns", i), source))
        for i, entry in enumerate(document.patterns)
    ]
    policy = PolicyFile(
        file=file,
        tables=tables,
        tables_per_session=document.defaults.tables_per_session,
        defaults=layer_of("defaults", document.defaults, ("defaults",), source),
        patterns=tuple(sorted(patterns, key=lambda pattern: pattern.specificity)),
        unusable=unusable,
    )
    return _without_misfits(policy)


def _without_misfits(policy: PolicyFile) -> PolicyFile:
    """The policy file with those tables moved to `unusable` whose merged settings do not fit their format."""
    fitting, misfits = list[TablePolicy](), list[UnusableTable]()
    for table in policy.tables:
        try:
            policy.effective(table.name)
            fitting.append(table)
        except PolicyError as error:
            misfits.append(UnusableTable(table.name, table.address.format, str(error)))
    return replace(policy, tables=tuple(fitting), unusable=(*policy.unusable, *misfits))


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{file}:1: expected a policy file in UTF-8, found {error}") from error


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


def _tables(
    document: Document, source: YamlDocument, environ: Mapping[str, str]
) -> tuple[tuple[TablePolicy, ...], tuple[UnusableTable, ...]]:
    tables, unusable = list[TablePolicy](), list[UnusableTable]()
    for i, entry in enumerate(document.tables):
        here: Location = ("tables", i)
        try:
            address = _address(entry, source, environ)
        except AddressError as error:
            fault = f"{source.at((*here, 'table'))}: tables[{i}].table: expected {error}"
            unusable.append(UnusableTable(entry.name, format_of(entry.table), fault))
            continue
        try:
            layer = layer_of(f"table {entry.name}", entry, here, source)
        except PolicyError as error:
            unusable.append(UnusableTable(entry.name, address.format, str(error)))
            continue
        tables.append(TablePolicy(address, layer, source.line((*here, "name"))))
    repeated = _repeated(tables, source.file)
    if repeated:
        raise PolicyError("\n".join([*(each.fault for each in unusable), *repeated]))
    return tuple(tables), tuple(unusable)


def _require_age(address: Address, settings: Settings, origin: Origin) -> None:
    """Raises PolicyError for a sweep below the format's floor. Layers do not know the format, so it is checked here."""
    floor, age = floor_ms(address.format), settings.sweep.older_than
    if age < floor:
        raise PolicyError(
            f"{origin.file}:{origin.line}: sweep.older_than: expected at least {format_duration(floor)} for "
            f"{address.name}, a table of {address.format}, found {format_duration(age)}"
        )


def _repeated(tables: Sequence[TablePolicy], file: str) -> list[str]:
    """Faults for a name that is used twice, and for a table with two entries."""
    first: dict[object, int] = {}
    faults = []
    for table in tables:
        keys = {table.name: f"name {table.name!r}", same_place(table.address): f"table {table.address}"}
        for key, what in keys.items():
            if key in first:
                faults.append(f"{file}:{table.line}: {what}: expected once, found before on line {first[key]}")
            first.setdefault(key, table.line)
    return faults


def _address(entry: TableEntry, source: YamlDocument, environ: Mapping[str, str]) -> Address:
    folder = os.path.dirname(os.path.abspath(source.file))
    return parse_address(substitute(entry.table, environ), folder, name=entry.name)
