"""A seed -> a table whose compaction Paimon Java prepares, and commits after an upgrade of ours -> how that ended."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon.contents import opened
from tests.formats.paimon.upgrade import upgrade

from nightkeep.protocol import Undone

COLUMNS = [("id", "INT NOT NULL"), ("text", "STRING")]


@dataclass(frozen=True, slots=True)
class Race:
    """How one ended. `hurt`: readers see keys twice, or rows that the version before Java's commit did not hold."""

    accepted: bool
    hurt: bool
    found: tuple[Undone, ...]


def race(engine: PaimonJava, seed: int, folder: Path) -> Race:
    """The table of a seed: some life, a prepared compaction, more life with an upgrade in it, the commit."""
    random = Random(f"stale compaction {seed}")
    table = folder / "shop.db" / f"race{seed}"
    options = {"bucket": random.choice(("1", "2")), "deletion-vectors.enabled": "true", "write-only": "true"}
    if random.random() < 0.3:
        options["deletion-vectors.bitmap64"] = "true"
    if random.random() < 0.4:
        options["num-sorted-run.compaction-trigger"] = random.choice(("2", "3"))
    if random.random() < 0.4:
        options["target-file-size"] = "2 kb"
    engine.create(table, Layout(COLUMNS, ["id"], options=options))
    write(engine, table, range(3000), "base")
    engine.compact(table, Compaction(full=True, user="compactor"))
    write(engine, table, range(0, 3000, random.choice((2, 3, 7))), "second")
    _compact(engine, table, random)
    _live(engine, table, random, steps=random.randint(0, 2))
    prepared = engine.prepare_compact(table, Compaction(full=random.random() < 0.7, user="compactor"))
    _live(engine, table, random, steps=random.randint(1, 3), compacts=False)
    upgrade(table, run_id=f"{seed}", full=random.random() < 0.2)
    if random.random() < 0.3:
        _live(engine, table, random, steps=1, compacts=False)
    before = merged(engine, table)
    assert prepared.handle is not None
    version = latest(engine, table)
    try:
        engine.commit_prepared(prepared.handle)
    except EngineError as refusal:
        assert "conflict" in str(refusal).lower(), refusal
        return Race(accepted=False, hurt=False, found=found(table))
    keys = Counter(row[0] for row in engine.read(table).rows)
    hurt = merged(engine, table) != before or max(keys.values(), default=0) > 1
    return Race(accepted=latest(engine, table) > version, hurt=hurt, found=found(table))


def _live(engine: PaimonJava, table: Path, random: Random, *, steps: int, compacts: bool = True) -> None:
    for step in range(steps):
        kind = random.choice(("+U", "+U", "-D"))
        keys = range(3000, 6000) if random.random() < 0.3 else range(3000)
        write(engine, table, sorted(random.sample(keys, random.randint(1, 60))), f"step {step}", kind=kind)
        if compacts and random.random() < 0.9:
            _compact(engine, table, random)


def _compact(engine: PaimonJava, table: Path, random: Random) -> None:
    if random.random() < 0.5:
        upgrade(table)
    else:
        engine.compact(table, Compaction(full=random.random() < 0.1, user="compactor"))


def write(engine: PaimonJava, table: Path, keys: Any, text: str, *, kind: str = "+U") -> None:
    engine.write(table, [[kind, key, f"{text} {key}"] for key in keys], Writer(user="writer"))


def merged(engine: PaimonJava, table: Path) -> list[tuple[Any, ...]]:
    return sorted(engine.read(table, Scan(options=MERGE_ON_READ)).rows)


def latest(engine: PaimonJava, table: Path) -> int:
    snapshot = engine.snapshot(table)
    assert snapshot is not None
    return int(snapshot["id"])


def found(table: Path) -> tuple[Undone, ...]:
    """What a first look at the whole history finds."""
    there = opened(table)
    watch = there.watch(there.snapshot(), None, now_ms=time.time_ns() // 1_000_000)
    assert watch is not None
    return watch.undone
