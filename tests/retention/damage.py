"""Damage to metadata files of a table, drawn by chance: cuts, bits, dropped blocks, files in each other's place.

What every kind of damage is held to: a sweep of the damaged table names no file as an orphan that readers of the
table as it was need. Where it has no evidence, it may name one in a dry run, and refuses to delete anything.
"""

import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from nightkeep.errors import NightkeepError
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import OpenFiles, Retention
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.retention.orphans.sweep_table import sweep_table

MAGIC, SYNC_BYTES = b"Obj\x01", 16

Blow = Mapping[Path, bytes]
"""Files and what they have from now on."""


@dataclass
class World:
    """A table with leftovers: how to open it, its metadata, and metadata of other tables of its kind.

    `now_ms` is when it is swept; `older_than_ms` how old a file must be to go.
    """

    name: str
    opened: Callable[[], OpenFiles]
    metadata: tuple[Path, ...]
    foreign: tuple[Path, ...]
    now_ms: int
    older_than_ms: int
    live: frozenset[str] = frozenset()
    orphans: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.live = frozenset(_needed(self.opened(), Retention(self.now_ms, self.older_than_ms)))
        found = self.look()
        self.orphans = found.named
        assert found.refusal is None and self.orphans and not self.orphans & self.live, (self.name, found.refusal)

    def look(self) -> "Found":
        """What a sweep that would delete says; it is stopped before the first file goes."""
        order = SweepOrder(SweepMode.DRY_RUN, older_than_ms=self.older_than_ms, below_floor=True, max_share=1.0)
        with closing(MemorySets()) as sets:
            done = sweep_table(self.opened(), order, Run("fuzz", "0" * 16, "a", self.now_ms), sets=sets)
            assert done.counted is not None
            named = frozenset(name for batch in sets.orphans() for name in batch["name"].to_pylist())
            unproven = done.counted.not_evident
        assert done.outcome in (Outcome.SKIPPED, Outcome.UNCHANGED)
        return Found(named, str(unproven[0]) if unproven else None)


@dataclass(frozen=True)
class Found:
    """Names of orphans; `refusal` is why none of them would be deleted for good."""

    named: frozenset[str]
    refusal: str | None


@dataclass
class Tallies:
    """How sweeps of damaged tables ended, and each that named a live file."""

    endings: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {ending}" for ending, count in sorted(self.endings.items()))


def fuzz(worlds: Sequence[World], *, count: int, seed: int = 0) -> Tallies:
    """Damage the worlds in turn, `count` times in all; each is whole again after each time."""
    found = Tallies()
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        world = worlds[number % len(worlds)]
        kind, blow = _blow(world, chance)
        with _struck(blow):
            ending = _ending(world, found, f"{world.name}, seed {seed}/{number}, {kind} of {', '.join(_bases(blow))}")
        found.endings[ending] += 1
        found.endings[f"= {kind}"] += 1
    return found


def _ending(world: World, found: Tallies, case: str) -> str:
    try:
        look = world.look()
    except NightkeepError as failure:
        return f"stopped: {type(failure).__name__}"
    except Exception as surprise:  # noqa: BLE001
        # Whatever it is, it names nothing: what becomes of it at the command's rim is not what is asked here.
        found.surprises.append(f"{case}: {type(surprise).__name__}: {surprise}")
        return "surprised"
    named = look.named & world.live
    if not named:
        return "named the orphans" if look.named == world.orphans else "named others that no reader needs"
    told = f"{case}: {sorted(named)[:3]} ({look.refusal})"
    if look.refusal is not None:
        found.unproven.append(told)
        return "named a live file without evidence: delete is refused"
    found.failures.append(told)
    return "NAMED A LIVE FILE"


def _needed(table: OpenFiles, retention: Retention) -> Iterator[str]:
    for root in table.roots(retention):
        reach = table.reach(root)
        for files in (reach.files, *(batch for source in reach.sources for batch in table.live(source))):
            yield from (row["name"] for row in files.to_pylist() if row["needed"])


@contextmanager
def _struck(blow: Blow) -> Iterator[None]:
    before = {path: path.read_bytes() for path in blow}
    try:
        for path, data in blow.items():
            path.write_bytes(data)
        yield
    finally:
        for path, data in before.items():
            path.write_bytes(data)


def _bases(blow: Blow) -> list[str]:
    return sorted(path.name for path in blow)


def emptied(path: Path) -> None:
    """Cut before its first block or line: an Avro file that says nothing, and is a valid one."""
    path.write_bytes(pieces(path.read_bytes())[0])


# ---- what may happen to files ----


def _blow(world: World, chance: random.Random) -> tuple[str, Blow]:
    path = chance.choice(world.metadata)
    kind = chance.choice([*_KINDS])
    return kind, _KINDS[kind](world, path, chance)


def _cut(world: World, path: Path, chance: random.Random) -> Blow:
    data = path.read_bytes()
    return {path: data[: chance.randrange(len(data) + 1)]}


def _cut_at_end(world: World, path: Path, chance: random.Random) -> Blow:
    """After any block or line, also before the first."""
    head, parts = pieces(path.read_bytes())
    return {path: head + b"".join(parts[: chance.randrange(len(parts))] if parts else ())}


def _drop(world: World, path: Path, chance: random.Random) -> Blow:
    """One block or line, or several."""
    head, parts = pieces(path.read_bytes())
    kept = [part for part in parts if chance.random() < 0.5] if chance.random() < 0.5 else [*parts]
    if len(kept) == len(parts) and kept:
        kept.pop(chance.randrange(len(kept)))
    return {path: head + b"".join(kept)}


def _flip(world: World, path: Path, chance: random.Random) -> Blow:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return {path: bytes(data)}


def _exchange(world: World, path: Path, chance: random.Random) -> Blow:
    other = chance.choice(_alike(world.metadata, path))
    return {path: other.read_bytes(), other: path.read_bytes()}


def _copy(world: World, path: Path, chance: random.Random) -> Blow:
    return {path: chance.choice(_alike(world.metadata, path)).read_bytes()}


def _copy_of_another(world: World, path: Path, chance: random.Random) -> Blow:
    return {path: chance.choice(_alike(world.foreign, path) or (path,)).read_bytes()}


_KINDS: Mapping[str, Callable[[World, Path, random.Random], Blow]] = {
    "cut": _cut,
    "cut at a block's end": _cut_at_end,
    "dropped blocks": _drop,
    "bits": _flip,
    "exchange": _exchange,
    "copy": _copy,
    "copy from another table": _copy_of_another,
}


def _alike(paths: Sequence[Path], path: Path) -> list[Path]:
    """Files of the same kind, as far as their name and folder tell."""
    return [other for other in paths if _kind(other) == _kind(path)]


def _kind(path: Path) -> tuple[str, ...]:
    word = "".join(character for character in path.name if not character.isdigit())
    return path.parent.name.partition("-")[0], word.partition("-")[0][:5], path.name.rpartition(".")[2][:4]


def pieces(data: bytes) -> tuple[bytes, list[bytes]]:
    """What is before the first block of an Avro file or the first line of a text, and each of those."""
    if not data.startswith(MAGIC):
        return b"", data.splitlines(keepends=True)
    body = io.BytesIO(data)
    body.seek(len(MAGIC))
    while count := _long(body):
        # A negative count is followed by the bytes of its block.
        _ = _long(body) if count < 0 else None
        for _ in range(2 * abs(count)):
            body.seek(_long(body), io.SEEK_CUR)
    ends = [body.seek(SYNC_BYTES, io.SEEK_CUR)]
    while ends[-1] < len(data):
        _long(body)
        body.seek(_long(body), io.SEEK_CUR)
        ends.append(body.seek(SYNC_BYTES, io.SEEK_CUR))
    return data[: ends[0]], [data[begin:end] for begin, end in pairwise(ends)]


def _long(body: io.BytesIO) -> int:
    """A number as Avro writes it."""
    value = shift = 0
    while True:
        (byte,) = body.read(1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)


def without_sizes(path: Path) -> None:
    """A snapshot or tag as releases of Paimon before 1.0 wrote it."""
    told = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in told.items() if not key.endswith("ListSize")}))
