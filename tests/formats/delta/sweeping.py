"""Delta tables made older than they are, with leftovers planted among their files, and sweeps of them."""

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.formats.delta.runs import opened
from tests.formats.delta.vacuum import SMALL

from nightkeep.formats.delta.retention.action_files import vector_names
from nightkeep.model import Operation, Run, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

Tell = Mapping[str, dict[str, Any]]


def aged(table: Path, *, days: float = 30, late: int = 0, late_days: float = 3) -> None:
    """Every commit and its files as if made `days` ago, a second apart; the last `late` ones `late_days` ago.

    Checksums go: they are Hadoop's and Spark's of what was there before.
    """
    for checksum in [*table.rglob(".*.crc"), *(table / "_delta_log").glob("*.crc")]:
        checksum.unlink(missing_ok=True)
    now_ms, made = int(time.time() * 1000), dict[str, int]()
    commits = sorted((table / "_delta_log").glob("[0-9]*.json"))
    commits = [path for path in commits if path.stem.isdecimal()]
    for number, path in enumerate(commits):
        age = late_days if number >= len(commits) - late else days
        at_ms = int(now_ms - age * DAY_MS) + number * 1000
        actions = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        lines = [json.dumps(_at(action, at_ms), ensure_ascii=False) + "\n" for action in actions]
        path.write_text("".join(lines), encoding="utf-8", newline="\n")
        touch(path, at_ms)
        for name in _named(actions):
            made.setdefault(name, at_ms)
    for file in table.rglob("*"):
        if file.is_file() and file not in commits:
            touch(file, made.get(str(file.relative_to(table)), int(now_ms - days * DAY_MS)))


def touch(file: Path, at_ms: int) -> None:
    os.utime(file, ns=(at_ms * 1_000_000,) * 2)


def plant(table: Path, *names: str, days: float = 30) -> set[str]:
    """Files nobody names, so old."""
    for name in names:
        file = table / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of {name}")
        touch(file, int(time.time() * 1000 - days * DAY_MS))
    return set(names)


def part(folder: str = "", *, end: str = ".c000.snappy.parquet") -> str:
    """A name that delta-spark would give."""
    return f"{folder}part-00000-{uuid.uuid4()}{end}"


def run_of(run_id: str = "sweep-1", operation: Operation = Operation.SWEEP) -> Run:
    return Run(run_id, run_token(run_id, operation), uuid.uuid4().hex[:8], int(time.time() * 1000))


def swept(table: Path, mode: SweepMode = SweepMode.DRY_RUN, **settings: Any) -> tuple[SweepResult, set[str]]:
    """What a sweep says, and the orphans it found."""
    sets = MemorySets()
    told = sweep_table(opened(table).retention, SweepOrder(mode, **settings), run_of(), sets=sets)
    found = {name for batch in sets.orphans() for name in batch["name"].to_pylist()}
    sets.close()
    return told, found


def vacuum_would(delta_spark: DeltaSpark, table: Path) -> set[str]:
    """Files that delta-spark's VACUUM would delete, by the table's own retention; folders are not among them."""
    delta_spark.forget()
    with delta_spark.configured(SMALL):
        rows = delta_spark.sql(f"VACUUM {named(table)} DRY RUN").rows
    found = {str(path).removeprefix("file:").removeprefix(f"{table.absolute()}/") for (path,) in rows}
    return {name for name in found if (table / name).is_file()}


def readable(delta_spark: DeltaSpark, table: Path) -> dict[int, Any]:
    """Rows of every version that delta-spark can read now: it refuses those replaced before the table's retention."""
    found = {}
    for version in range(opened(table).snapshot().version + 1):
        try:
            found[version] = delta_spark.read(table, version=version)
        except EngineError:
            continue
    return found


def _at(action: Tell, at_ms: int) -> Tell:
    for kind, body in action.items():
        for name in ("timestamp", "inCommitTimestamp", "deletionTimestamp", "modificationTime"):
            if name in body:
                body[name] = at_ms
        if kind == "remove":
            body["deletionTimestamp"] = at_ms
    return action


def _named(actions: Iterable[Tell]) -> Iterator[str]:
    for action in actions:
        for kind in ("add", "cdc"):
            if kind in action:
                yield unquote(action[kind]["path"])
                yield from vector_names(action[kind])
