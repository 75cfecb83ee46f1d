"""tables.yaml and the files that it imports -> PolicyFile. A fault of one entry or file concerns its own tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nightkeep.errors import AddressError, PolicyError, brief
from nightkeep.model import Address
from nightkeep.policy.address import format_of, metastore_of, parse_address, same_place, substitute
from nightkeep.policy.document import KINDS, DiscoverEntry, Discovery, Document, TeamDocument
from nightkeep.policy.effective import Pattern, PolicyFile, TablePolicy, UnusableTable
from nightkeep.policy.entries import FaultyEntry, FileEntries, read_entries
from nightkeep.policy.files import absolute_folder, folder_of, matching, same_file
from nightkeep.policy.layers import Origin, layer_of
from nightkeep.policy.yaml_source import YamlDocument, dotted

MOST_IMPORTS: Final = 1000
"""Files that one policy may import: a slip in a glob should not read a whole disk."""


def load(path: str | Path, *, text: str | None = None, environ: Mapping[str, str] | None = None) -> PolicyFile:
    """The policy in the file `path`, or in `text` instead of its content (`version: 1` is a complete policy).

    `path` is a local path, or the address of a file in a store (`s3://bucket/policies/tables.yaml`). What the file
    names by a relative path, imports and suites and tables, is beside it.

    `environ` has the variables of addresses; None means the process environment. Every layer is checked, used or not.
    Raises PolicyError with one line per fault, each starting with file:line.
    """
    policy = load_usable(path, text=text, environ=environ)
    faults = faults_of(policy)
    if faults:
        raise PolicyError("\n".join(faults))
    return policy


def faults_of(policy: PolicyFile) -> tuple[str, ...]:
    """Every fault of the policy's files, a line each, by file and line."""
    lines = [line for each in policy.unusable for line in each.fault.split("\n")]
    lines += [line for pattern in policy.patterns for line in pattern.fault.split("\n") if line]
    return tuple(sorted(dict.fromkeys(lines), key=_place_of))


def load_usable(path: str | Path, *, text: str | None = None, environ: Mapping[str, str] | None = None) -> PolicyFile:
    """As `load`, but a table without a valid policy goes to `unusable`, so that work on the other tables can go on.

    An example is an address with an unset variable. Raises PolicyError for faults of the file as a whole."""
    file = str(path)
    main = read_entries(file, text, Document)
    assert isinstance(main.document, Document)
    teams, unreadable, warnings = _imported(main, main.document.imports)
    reader = _Resolver(file, os.environ if environ is None else environ)
    patterns = [pattern for each in (main, *teams) for pattern in reader.patterns(each)]
    entries = [entry for each in (main, *teams) for entry in reader.tables(each)]
    places = [place for each in (main, *teams) for place in reader.discoveries(each)]
    tables, unusable = _unrepeated(entries)
    policy = PolicyFile(
        file=file,
        tables=(),
        tables_per_session=main.document.defaults.tables_per_session,
        defaults=layer_of("defaults", main.document.defaults, ("defaults",), main.source),
        patterns=tuple(sorted(patterns, key=lambda pattern: pattern.specificity)),
        discoveries=tuple(place for place in places if isinstance(place, Discovery)),
        warnings=warnings,
        budget=main.document.budget,
        audit_budget=main.document.audit_budget,
        prices=None if main.document.prices is None else main.document.prices.prices,
        reports=main.document.reports,
    )
    unknown = [place for place in places if isinstance(place, UnusableTable)]
    return policy.with_tables(tables, [*unusable, *unknown, *unreadable])


def _place_of(fault: str) -> tuple[str, int]:
    """File and line at the beginning of a fault."""
    file, _, rest = fault.partition(": ")[0].rpartition(":")
    return (file, int(rest)) if rest.isdigit() else (fault, 0)


def _imported(
    main: FileEntries, globs: Sequence[str]
) -> tuple[list[FileEntries], list[UnusableTable], tuple[str, ...]]:
    """What the imported files hold, those that cannot be read, and warnings about globs without a file."""
    source, teams, warnings = main.source, list[FileEntries](), list[str]()
    folder, seen = folder_of(source.file), {same_file(source.file)}
    unreadable = [
        UnusableTable(f"{os.path.basename(source.file)} {dotted(faulty.location)}", "unknown", faulty.fault)
        for faulty in _faulty(main, "imports")
    ]
    for i, text in zip(main.places["imports"], globs, strict=True):
        here = f"{source.at(('imports', i))}: imports[{i}]"
        try:
            files = matching(source.file, text)
        except (OSError, ValueError) as failure:
            unreadable.append(UnusableTable(f"import {text}", "unknown", f"{here}: {_unlisted(failure)}"))
            continue
        if len(files) + len(seen) > MOST_IMPORTS:
            fault = f"{here}: expected at most {MOST_IMPORTS} files in all, found more"
            unreadable.append(UnusableTable(f"import {text}", "unknown", fault))
            continue
        if not files:
            warnings.append(f"{here}: no file matches {text}")
        for file in files:
            if same_file(file) in seen:
                continue
            seen.add(same_file(file))
            try:
                teams.append(read_entries(file, None, TeamDocument))
            except PolicyError as error:
                name = os.path.relpath(file, folder or ".")
                unreadable.append(UnusableTable(f"import {name}", "unknown", str(error)))
    return teams, unreadable, tuple(warnings)


def _unlisted(failure: OSError | ValueError) -> str:
    if isinstance(failure, OSError):
        return f"expected files that can be listed, found {failure}"
    return f"expected {failure.args[0]}"


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry of `tables`, usable or not, and its line."""

    table: TablePolicy | UnusableTable
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Resolver:
    """Entries of files -> patterns, tables and places to look at. Patterns of `main` are for all tables."""

    main: str
    environ: Mapping[str, str]

    def patterns(self, entries: FileEntries) -> list[Pattern]:
        source, found = entries.source, list[Pattern]()
        only = None if source.file == self.main else source.file
        for faulty in _faulty(entries, "patterns"):
            # A pattern without a glob could be for any table.
            glob, line = faulty.text("match") or "*", source.line(faulty.location)
            found.append(Pattern(glob, None, Origin(f"pattern {glob}", source.file, line), only, faulty.fault))
        for i, entry in zip(entries.places["patterns"], entries.document.patterns, strict=True):
            origin = Origin(f"pattern {entry.match}", source.file, source.line(("patterns", i)))
            try:
                layer = layer_of(origin.layer, entry, ("patterns", i), source)
                found.append(Pattern(entry.match, layer, origin, only, budget=entry.budget))
            except PolicyError as error:
                found.append(Pattern(entry.match, None, origin, only, str(error)))
        return found

    def tables(self, entries: FileEntries) -> list[_Listed]:
        source, listed = entries.source, list[_Listed]()
        for faulty in _faulty(entries, "tables"):
            name = faulty.text("name") or f"{os.path.basename(source.file)} {dotted(faulty.location)}"
            text = faulty.text("table") or ""
            unusable = UnusableTable(name, format_of(text), faulty.fault, self._known(text, name, source))
            listed.append(_Listed(unusable, Origin(f"table {name}", source.file, source.line(faulty.location))))
        for i, entry in zip(entries.places["tables"], entries.document.tables, strict=True):
            origin = Origin(f"table {entry.name}", source.file, source.line(("tables", i, "name")))
            listed.append(_Listed(self._table(i, entries, origin), origin))
        return listed

    def discoveries(self, entries: FileEntries) -> list[Discovery | UnusableTable]:
        source = entries.source
        found: list[Discovery | UnusableTable] = [
            UnusableTable(brief(f"discover {_written(faulty, source)}"), _kind(faulty), faulty.fault)
            for faulty in _faulty(entries, "discover")
        ]
        for i, entry in zip(entries.places["discover"], entries.document.discover, strict=True):
            name, at = brief(f"discover {entry.kind}:{entry.place}"), ("discover", i, entry.kind)
            try:
                location = self._place(entry, name, source)
            except AddressError as error:
                fault = f"{source.at(at)}: {dotted(at)}: expected {error}"
                found.append(UnusableTable(name, entry.kind, fault))
                continue
            found.append(Discovery(name, entry.kind, location, entry, Origin(name, source.file, source.line(at[:2]))))
        return found

    def _table(self, i: int, entries: FileEntries, origin: Origin) -> TablePolicy | UnusableTable:
        at = entries.places["tables"].index(i)
        entry, source = entries.document.tables[at], entries.source
        try:
            address = self._address(entry.table, entry.name, source)
        except AddressError as error:
            fault = f"{source.at(('tables', i, 'table'))}: tables[{i}].table: expected {error}"
            return UnusableTable(entry.name, format_of(entry.table), fault)
        try:
            return TablePolicy(address, layer_of(origin.layer, entry, ("tables", i), source), origin)
        except PolicyError as error:
            return UnusableTable(entry.name, address.format, str(error), address)

    def _place(self, entry: DiscoverEntry, name: str, source: YamlDocument) -> str:
        if entry.kind in ("hive", "glue"):
            return metastore_of(entry.kind, substitute(entry.place, self.environ))
        return self._address(f"{entry.kind}:{entry.place}", name, source).location

    def _address(self, text: str, name: str, source: YamlDocument) -> Address:
        folder = absolute_folder(source.file)
        return parse_address(substitute(text, self.environ), folder, name=name)

    def _known(self, text: str, name: str, source: YamlDocument) -> Address | None:
        try:
            return self._address(text, name, source)
        except AddressError:
            return None


def _faulty(entries: FileEntries, key: str) -> list[FaultyEntry]:
    return [each for each in entries.faulty if each.location[0] == key]


def _kind(faulty: FaultyEntry) -> str:
    return next((kind for kind in KINDS if faulty.text(kind) is not None), "unknown")


def _written(faulty: FaultyEntry, source: YamlDocument) -> str:
    kind = _kind(faulty)
    place = faulty.text(kind)
    return f"{os.path.basename(source.file)} {dotted(faulty.location)}" if place is None else f"{kind}:{place}"


def _unrepeated(entries: Sequence[_Listed]) -> tuple[list[TablePolicy], list[UnusableTable]]:
    """Tables, and entries that cannot be used. Of a name or a table that has several entries, none is in force."""
    same: dict[object, list[_Listed]] = {}
    for each in entries:
        for key, _ in _keys(each):
            same.setdefault(key, []).append(each)
    tables, unusable = list[TablePolicy](), dict[str, UnusableTable]()
    for each in entries:
        faults = [fault for key, what in _keys(each) if len(same[key]) > 1 for fault in _repeated(what, same[key])]
        table = each.table
        if isinstance(table, TablePolicy) and not faults:
            tables.append(table)
            continue
        own = [table.fault] if isinstance(table, UnusableTable) else []
        earlier = [unusable[table.name].fault] if table.name in unusable else []
        fault = "\n".join(dict.fromkeys("\n".join([*earlier, *own, *faults]).split("\n")))
        address = table.address
        kind = table.format if isinstance(table, UnusableTable) else table.address.format
        unusable[table.name] = UnusableTable(table.name, kind, fault, address)
    return tables, [*unusable.values()]


def _keys(each: _Listed) -> list[tuple[object, str]]:
    table = each.table
    keys: list[tuple[object, str]] = [(table.name, f"name {table.name!r}")]
    return keys if table.address is None else [*keys, (same_place(table.address), f"table {table.address}")]


def _repeated(what: str, entries: Sequence[_Listed]) -> list[str]:
    """A fault for each entry but the first."""
    first = entries[0].origin
    return [
        f"{each.file}:{each.line}: {what}: expected once, found before {_named(first, each)}"
        for each in (entry.origin for entry in entries[1:])
    ]


def _named(first: Origin, other: Origin) -> str:
    return f"on line {first.line}" if first.file == other.file else f"in {first.file}, line {first.line}"
