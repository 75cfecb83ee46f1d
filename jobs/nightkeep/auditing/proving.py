"""A chain of commits that state that they keep rows -> a verdict on each, by the rows at both ends.

Units that hold the same files at both ends are proven by that. Of the others, the rows that moved are read and hashed.
Where the ends differ, or cannot be read, each commit of the chain is compared with its own parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nightkeep.auditing.budget import UnitBudget
from nightkeep.auditing.chains import Chain
from nightkeep.auditing.unit_comparison import RowsApart, kept_rows, moved_rows, rows_apart
from nightkeep.auditing.verdicts import CommitVerdict, UnitVerdict, Verdict
from nightkeep.errors import EvidenceError, MissingFile, RefusedTable, UsageError
from nightkeep.model import Fingerprint, UnitKey
from nightkeep.protocol import Gate, OpenTable, Snapshot, Unit
from nightkeep.protocol.past import KeepsRows, PastReading
from nightkeep.records.check_report import Difference
from nightkeep.tasks import Mapper

OVER_BUDGET: Final = "over the budget of the audit"


@dataclass(frozen=True, slots=True)
class Prover:
    """Judges chains of one table. `task_bytes`: what the comparison of a unit may hold in memory."""

    table: OpenTable
    past: PastReading[Snapshot, Unit]
    mapper: Mapper
    budget: UnitBudget
    task_bytes: int

    def judge(self, chain: Chain) -> Iterator[CommitVerdict]:
        """A verdict on each commit of the chain that keeps rows, oldest first."""
        try:
            end = self._version(chain.end)
        except (EvidenceError, RefusedTable) as failure:
            yield from self._without_end(chain, failure)
            return
        try:
            base = self._version(chain.base, end)
        except (EvidenceError, RefusedTable) as failure:
            yield from self._without_base(chain, failure)
            return
        verdicts = self._units(chain, *self.past.comparable(base, end))
        worst = Verdict.worst(each.verdict for each in verdicts)
        is_unexplained = any(each.verdict is not Verdict.PROVEN and each.why != OVER_BUDGET for each in verdicts)
        if is_unexplained and len(chain.links) > 1:
            for link in chain.links:
                yield from self.judge(link)
            return
        for link in chain.links:
            yield CommitVerdict(link.commits[0], worst, chain.base, verdicts)
            # The rows of the chain are counted once.
            verdicts = tuple(replace(each, bytes=0) for each in verdicts)

    def _version(self, number: int, read_as: Snapshot | None = None) -> Snapshot:
        """The version, also of a table that no operation handles, as far as its rows can be read."""
        try:
            return self.table.snapshot(number, read_as=read_as)
        except RefusedTable:
            if self.table.reading is None:
                raise
            try:
                return self.table.reading.snapshot(number, read_as=read_as)
            except UsageError as failure:
                raise MissingFile(f"version {number}", "a version that the table keeps", "none") from failure

    def _without_end(self, chain: Chain, failure: EvidenceError | RefusedTable) -> Iterator[CommitVerdict]:
        """Where the last version cannot be read, the others of the chain may be."""
        if len(chain.links) == 1:
            yield CommitVerdict(chain.commits[0], self._why_unread(chain, failure), chain.base, why=str(failure))
            return
        for link in chain.links:
            yield from self.judge(link)

    def _without_base(self, chain: Chain, failure: EvidenceError | RefusedTable) -> Iterator[CommitVerdict]:
        """A commit is not to blame for the version that it is built on. The others of the chain have other ones."""
        first, rest = chain.links[0], chain.rest
        why = f"version {chain.base}, which it is built on, cannot be read: {failure}"
        yield CommitVerdict(first.commits[0], Verdict.NOT_PROVABLE, first.base, why=why)
        if rest is not None:
            yield from self.judge(rest)

    def _why_unread(self, chain: Chain, failure: EvidenceError | RefusedTable) -> Verdict:
        """Metadata that is there and cannot be read is unsound; what has expired is not provable."""
        if isinstance(failure, RefusedTable):
            return Verdict.NOT_PROVABLE
        if isinstance(failure, MissingFile):
            has_expired = self.past.is_expired(failure) or not self._are_there(chain.base, chain.end)
            return Verdict.NOT_PROVABLE if has_expired else Verdict.UNSOUND
        return Verdict.UNSOUND

    def _are_there(self, *versions: int) -> bool:
        try:
            return all(self.table.digest(version) is not None for version in versions)
        except EvidenceError:
            return False

    def _units(self, chain: Chain, base: Snapshot, end: Snapshot) -> tuple[UnitVerdict, ...]:
        before, after = ({unit.key: unit for unit in self.table.units(each)} for each in (base, end))
        pairs = {key: (before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys())}
        touched = {key: pair for key, pair in pairs.items() if self._moved(*pair)}
        sizes = {key: self._bytes(*pair) for key, pair in touched.items()}
        unread = {key: why for key, pair in touched.items() if (why := self._why_not_read(*pair)) is not None}
        readable = {key: pair for key, pair in touched.items() if key not in unread}
        chosen = {key: self._apart(*pair) for key, pair in readable.items() if self.budget.takes(sizes[key])}
        expires = self.past.expires(end) or self.past.expires(base)
        found = self._compared(chosen, touched, chain.time_ms if expires else None)
        modulo = f"keys with rows that {expires} lets expire count on neither side" if expires else None
        return tuple(
            replace(self._verdict(chain, found[key]), key=key, bytes=sizes[key], modulo=modulo)
            if key in found
            else UnitVerdict(key, Verdict.NOT_PROVABLE, why=unread.get(key, OVER_BUDGET))
            for key in touched
        )

    def _why_not_read(self, before: Unit | None, after: Unit | None) -> str | None:
        reasons = (self.past.unread(unit) for unit in (before, after) if unit is not None)
        return next((why for why in reasons if why is not None), None)

    def _compared(
        self, pairs: Mapping[UnitKey, _Pair], whole: Mapping[UnitKey, _Pair], clock_ms: int | None
    ) -> Mapping[UnitKey, _Sides]:
        """The moved rows of each unit, in parts that fit a task. `whole` has all files of the units."""
        gate = self.table.gate
        parts = [(key, part) for key, pair in pairs.items() for part in _parts(gate, pair, self.task_bytes)]
        sums = (
            self.mapper(_SumTask(gate, self.past, clock_ms), [part for _, part in parts], label="audit")
            if parts
            else []
        )
        found = {key: _Sides() for key in pairs}
        for (key, _), each in zip(parts, sums, strict=True):
            found[key] = found[key] + each
        unequal = [key for key, sides in found.items() if sides.differ]
        if clock_ms is not None and unequal:
            task = _AgedTask(gate, self.past, clock_ms)
            again = self.mapper(task, [(pairs[key], whole[key]) for key in unequal], label="audit")
            found |= dict(zip(unequal, again, strict=True))
            unequal = [key for key in unequal if found[key].differ]
        if self._moved_between(unequal, pairs, found):
            return found | {key: replace(found[key], moved_between=True) for key in unequal}
        explained = self.mapper(
            _ApartTask(gate, self.past, clock_ms), [(pairs[key], whole[key]) for key in unequal], label="audit"
        )
        return found | {key: replace(found[key], apart=each) for key, each in zip(unequal, explained, strict=True)}

    def _moved_between(
        self, unequal: Sequence[UnitKey], pairs: Mapping[UnitKey, _Pair], found: Mapping[UnitKey, _Sides]
    ) -> bool:
        """Whether the units differ because rows moved from those of one layout to those of another. Rows move within
        a layout only if they change: of its units, none may lose rows where another one gains some."""
        if len(found) < len(pairs) or not unequal or any(each.failure is not None for each in found.values()):
            return False
        loses, gains = set[object](), set[object]()
        for key in unequal:
            unit = next(each for each in pairs[key] if each is not None)
            (loses if found[key].before.rows > found[key].after.rows else gains).add(self.past.layout(unit))
        total = sum((found[key] for key in unequal), _Sides())
        return not loses & gains and total.before == total.after

    def _verdict(self, chain: Chain, sides: _Sides) -> UnitVerdict:
        failure = sides.failure
        if failure is not None:
            if sides.only_base_fails:
                why = f"rows of version {chain.base}, which it is built on, cannot be read: {failure}"
                return UnitVerdict(_NOWHERE, Verdict.NOT_PROVABLE, why=why)
            unread = Verdict.NOT_PROVABLE if isinstance(failure, ValueError) else self._why_unread(chain, failure)
            return UnitVerdict(_NOWHERE, unread, why=str(failure))
        if sides.before == sides.after and sides.twice:
            why = f"readers see {sides.twice:,} rows beside newer ones of the same key"
            shown = Difference(extra_count=sides.twice, note=why)
            return UnitVerdict(_NOWHERE, Verdict.DIFFERS, sides.before, sides.after, why, shown, sides.twice)
        if sides.before == sides.after or sides.moved_between:
            return UnitVerdict(_NOWHERE, Verdict.PROVEN, sides.before, sides.after)
        apart = sides.apart or RowsApart(Difference(), 0)
        return UnitVerdict(
            _NOWHERE,
            Verdict.DIFFERS,
            sides.before,
            sides.after,
            why=f"{sides.before.rows:,} rows moved before, {sides.after.rows:,} after",
            difference=apart.difference,
            doubled=apart.doubled,
        )

    def _moved(self, before: Unit | None, after: Unit | None) -> bool:
        if before is None or after is None:
            return any(unit is not None and self.past.files(unit) for unit in (before, after))
        return self._content(before) != self._content(after)

    def _content(self, unit: Unit) -> object:
        return self.past.files(unit).keys() if self.table.reading is None else self.table.reading.content(unit)

    def _apart(self, before: Unit | None, after: Unit | None) -> _Pair:
        return (before, after) if before is None or after is None else self.past.apart(before, after)

    def _bytes(self, before: Unit | None, after: Unit | None) -> int:
        """Of the files that one side alone has."""
        old, new = (dict(self.past.files(unit)) if unit is not None else {} for unit in (before, after))
        return sum(size for file, size in (old | new).items() if (file in old) != (file in new))


_Pair = tuple[Unit | None, Unit | None]
_Failure = EvidenceError | RefusedTable | ValueError
"""ValueError: a type whose values have no hash."""
_NOWHERE: Final = UnitKey("")


@dataclass(frozen=True, slots=True)
class _Sides:
    """The moved rows of both sides, or why they cannot be read. `apart` is there where they differ. `twice`: how
    many more rows the side after shows beside newer ones of their keys."""

    before: Fingerprint = field(default_factory=Fingerprint)
    after: Fingerprint = field(default_factory=Fingerprint)
    failure: _Failure | None = None
    apart: RowsApart | None = None
    twice: int = 0
    only_base_fails: bool = False
    moved_between: bool = False

    @property
    def differ(self) -> bool:
        return self.failure is None and self.before != self.after

    def __add__(self, other: _Sides) -> _Sides:
        worse = other if self.failure is None or (self.only_base_fails and other.failure is not None) else self
        return _Sides(
            self.before + other.before,
            self.after + other.after,
            worse.failure,
            twice=self.twice + other.twice,
            only_base_fails=worse.only_base_fails,
        )


def _parts(gate: Gate[Snapshot, Unit], pair: _Pair, task_bytes: int) -> Sequence[_Pair]:
    before, after = pair
    if before is None or after is None:
        return [pair]
    return gate.pieces(gate.within(before, task_bytes), gate.within(after, task_bytes))


@dataclass(frozen=True, slots=True)
class _SumTask:
    """Sums the moved rows of both sides. Pickles. Rows may move between parts, so that only sums over all decide."""

    gate: Gate[Snapshot, Unit]
    past: PastReading[Snapshot, Unit]
    clock_ms: int | None

    def __call__(self, pair: _Pair) -> _Sides:
        try:
            before, after = moved_rows(self.gate, *pair, clock_ms=self.clock_ms)
            old, new = (0 if unit is None else self.past.twice(unit) for unit in pair)
            return _Sides(before.total(), after.total(), twice=max(0, new - old))
        except (EvidenceError, RefusedTable, ValueError) as failure:
            return _Sides(failure=failure, only_base_fails=not self._is_read(pair[0]) and self._is_read(pair[1]))

    def _is_read(self, side: Unit | None) -> bool:
        """Whether the rows of a side can be read. They are read whole: this is asked after a failure alone."""
        try:
            moved_rows(self.gate, None, side, clock_ms=self.clock_ms)[1].total()
        except (EvidenceError, RefusedTable, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class _AgedTask:
    """Sums the moved rows of both sides without those that an expiry by age may have changed. Pickles."""

    gate: Gate[Snapshot, Unit]
    past: PastReading[Snapshot, Unit]
    clock_ms: int

    def __call__(self, pairs: tuple[_Pair, _Pair]) -> _Sides:
        before, after = moved_rows(
            self.gate, *pairs[0], clock_ms=self.clock_ms, keeps=_unaged(self.past, pairs[1], self.clock_ms)
        )
        return _Sides(before.total(), after.total())


@dataclass(frozen=True, slots=True)
class _ApartTask:
    """Finds the rows that differ. Pickles."""

    gate: Gate[Snapshot, Unit]
    past: PastReading[Snapshot, Unit]
    clock_ms: int | None

    def __call__(self, pairs: tuple[_Pair, _Pair]) -> RowsApart:
        moved, whole = pairs
        keeps = None if self.clock_ms is None else _unaged(self.past, whole, self.clock_ms)
        sides = moved_rows(self.gate, *moved, clock_ms=self.clock_ms, keeps=keeps)
        return rows_apart(*sides, kept_rows(self.gate, *whole))


def _unaged(past: PastReading[Snapshot, Unit], whole: _Pair, clock_ms: int) -> KeepsRows | None:
    return None if whole[0] is None else past.without_aged(whole[0], clock_ms)
