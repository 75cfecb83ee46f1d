"""Seed -> a table's definition and life -> the rows it must hold. The model is a dict; no engine is asked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path
from typing import Any

from tests.drivers.canonical import order_key
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.drivers.random_elements import alike
from tests.drivers.random_values import widened

Values = tuple[Any, ...]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch of (kind, value, ...) rows by one writer; a key may occur more than once."""

    rows: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """A seam: here, and after the last step, any compaction of the whole table may run, or none."""

    full: bool


@dataclass(frozen=True, slots=True)
class Alter:
    """Schema changes in PaimonJava.alter's form."""

    changes: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class Expire:
    """All snapshots but the latest go, and with them every file that only they refer to."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """All rows go, and no writer deletes them: those of one partition (values in order), or of the table."""

    partition: Values = ()


Step = Commit | Compact | Alter | Expire | Truncate


@dataclass(frozen=True, slots=True)
class History:
    seed: int
    layout: Layout
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        keys = f"key {', '.join(self.layout.primary_keys)}"
        names = " ".join(f"{name}={value}" for name, value in sorted(self.layout.options.items()))
        return f"history {self.seed}: {keys}; {names}; " + ", ".join(map(_title, self.steps))


def _title(step: Step) -> str:
    match step:
        case Commit():
            return f"commit {len(step.rows)}"
        case Compact():
            return "compact full" if step.full else "compact"
        case Alter():
            return " + ".join(f"{change['change']} {change['name']}" for change in step.changes)
        case Expire():
            return "expire"
        case Truncate():
            return f"truncate {', '.join(map(str, step.partition)) or 'all'}"


def play(engine: PaimonJava, table: Path, steps: Iterable[Step]) -> None:
    """Runs steps on a created table. The writer never compacts; compactions are another user's."""
    for step in steps:
        match step:
            case Commit():
                engine.write(table, step.rows, Writer(user="writer"))
            case Compact():
                engine.compact(table, Compaction(full=step.full, user="compactor"))
            case Alter():
                engine.alter(table, *step.changes)
            case Expire():
                engine.expire(table)
            case Truncate():
                names = engine.schema(table)["partitionKeys"] if step.partition else []
                spec = dict(zip(names, map(str, step.partition), strict=True))
                engine.truncate(table, *([spec] if spec else []))


def expected(history: History, steps: Sequence[Step] | None = None) -> dict[Key, Values]:
    """Primary key -> row after the steps (default: all of them), deduplicated as the table's options ask."""
    state = State(history.layout)
    for step in history.steps if steps is None else steps:
        state.apply(step)
    return state.rows()


def rows_by_key(history: History, rows: Iterable[Values]) -> dict[Key, Values]:
    """What an engine read, in the form of `expected`, elements without an order in ours. ValueError names a key that is
    there twice."""
    unordered = [place for place, (name, _) in enumerate(history.layout.columns) if name.startswith("u")]
    keys = _positions(history.layout, history.layout.primary_keys)
    found: dict[Key, Values] = {}
    for row in rows:
        key = tuple(row[i] for i in keys)
        if key in found:
            raise ValueError(f"key {key}: expected once, found {found[key]} and {row}")
        values = list(row)
        for place in unordered:
            values[place] = alike(values[place])
        found[key] = tuple(values)
    return found


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order in which a table's rows of one key replace each other; equal ranks go by time of writing."""

    fields: tuple[tuple[int, str], ...]
    """Position and type of each sequence field."""
    descending: bool

    @classmethod
    def of(cls, layout: Layout) -> "Ranking":
        named = layout.options.get("sequence.field")
        positions = _positions(layout, named.split(",")) if named else ()
        fields = tuple((i, layout.columns[i][1]) for i in positions)
        return cls(fields, layout.options.get("sequence.field.sort-order") == "descending")

    def rank(self, values: Values) -> tuple[Any, ...]:
        """Null is lowest, in both sort orders."""
        return tuple(self._one(values[i], type_text) for i, type_text in self.fields)

    def _one(self, value: Any, type_text: str) -> tuple[Any, ...]:
        if value is None:
            return (0,)
        key = order_key(value, type_text)
        return (1, _Reversed(key) if self.descending else key)


@total_ordering
@dataclass(frozen=True, slots=True)
class _Reversed:
    value: Any

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other.value < self.value)


class State:
    """The rows of a deduplicate table, deleted ones kept with the rank that deleted them."""

    def __init__(self, layout: Layout) -> None:
        self._names = [name for name, _ in layout.columns]
        self._keys = _positions(layout, layout.primary_keys)
        self._partition = _positions(layout, layout.partition_keys)
        self._ranking = Ranking.of(layout)
        self._winners: dict[Key, tuple[str, Values]] = {}

    def apply(self, step: Step) -> None:
        match step:
            case Commit():
                for kind, *values in step.rows:
                    self._offer(kind, tuple(values))
            case Alter():
                for change in step.changes:
                    self._alter(change)
            case Truncate():
                at = self._partition[: len(step.partition)]
                gone = [key for key, (_, row) in self._winners.items() if tuple(row[i] for i in at) == step.partition]
                for key in gone:
                    del self._winners[key]

    def rows(self) -> dict[Key, Values]:
        return {key: row for key, (kind, row) in self._winners.items() if kind in ("+I", "+U")}

    def tombstones(self) -> dict[Key, Values]:
        """Deleted keys -> the row that deleted them."""
        return {key: row for key, (kind, row) in self._winners.items() if kind in ("-D", "-U")}

    def _alter(self, change: Mapping[str, str]) -> None:
        name = change["name"]
        match change["change"]:
            case "add_column":
                self._names.append(name)
                self._replace(lambda row: (*row, None))
            case "drop_column":
                at = self._names.index(name)
                self._names.pop(at)
                self._replace(lambda row: (*row[:at], *row[at + 1 :]))
            case "rename_column":
                self._names[self._names.index(name)] = change["to"]
            case "change_type":
                at = self._names.index(name)
                self._replace(lambda row: (*row[:at], widened(row[at], change["type"]), *row[at + 1 :]))
            case "set_option":
                pass
            case kind:
                raise ValueError(f"schema change: expected one the model knows, found {kind}")

    def _replace(self, change: Callable[[Values], Values]) -> None:
        self._winners = {key: (kind, change(row)) for key, (kind, row) in self._winners.items()}

    def _offer(self, kind: str, row: Values) -> None:
        key = tuple(row[i] for i in self._keys)
        held = self._winners.get(key)
        if held is None or self._ranking.rank(row) >= self._ranking.rank(held[1]):
            self._winners[key] = (kind, row)


def _positions(layout: Layout, names: Iterable[str]) -> tuple[int, ...]:
    columns = [name for name, _ in layout.columns]
    return tuple(columns.index(name) for name in names)
