"""A Delta table whose log names files that are there: removed ones, vectors and change files, of the ages wanted."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.formats.delta.hand_log import HandLog, add, remove, vector
from tests.formats.delta.runs import opened
from tests.formats.delta.sweeping import swept, touch

from nightkeep.formats.delta.deletes import z85
from nightkeep.model.sweep_rules import DAY_MS, FoundBy, SweepMode
from nightkeep.protocol.table_files import LogPoint
from nightkeep.retention.orphans.sweep_request import SweepResult

_UNIQUE = b"0123456789abcdef"
MARKS = vector(z85.encode(_UNIQUE))
"""The descriptor of a vector in the file VECTORS."""
OWN = {"_delta_log", "_nightkeep"}
VECTORS = "deletion_vector_30313233-3435-3637-3839-616263646566.bin"
CHANGES = "_change_data/p=a/cdc-00000-old.c000.snappy.parquet"


def name(letter: str, folder: str = "p=a/") -> str:
    return f"{folder}part-00000-{letter}.c000.snappy.parquet"


@dataclass
class SweptLog(HandLog):
    """Every commit states how many files it adds, which is evidence for a sweep."""

    def made(self, version: int, *actions: Mapping[str, Any], days: float) -> None:
        """A commit of so many days ago, with the files that it adds."""
        at_ms, adds = at(days), sum("add" in action for action in actions)
        for action in actions:
            for kind in action.keys() & {"add", "cdc"}:
                self.leave(str(action[kind]["path"]), days=days)
                if action[kind].get("deletionVector"):
                    self.leave(VECTORS, days=days)
        info = {"timestamp": at_ms, "operation": "WRITE", "operationMetrics": {"numFiles": str(adds)}}
        head = self.head if version == 0 else []
        touch(self.commit(version, {"commitInfo": info}, *head, *actions), at_ms)

    def leave(self, path: str, *, days: float) -> None:
        """A file of so many days ago, unless it is there."""
        file = self.folder / path
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"x" * 100)
            touch(file, at(days))

    @property
    def names(self) -> set[str]:
        found = (path for path in self.folder.rglob("*") if path.is_file() and not OWN & {*path.parts})
        return {str(path.relative_to(self.folder)) for path in found}

    def sweep(
        self, mode: SweepMode = SweepMode.QUARANTINE, *, since: LogPoint | None = None, **settings: Any
    ) -> tuple[SweepResult, set[str]]:
        """The result of a sweep from the log, and the files that are gone since."""
        before = self.names
        result, _ = swept(self.folder, mode, found_by=FoundBy.LOG, since=since, max_share=1.0, **settings)
        return result, before - self.names

    def gap(self, since: LogPoint | None = None) -> str | None:
        by_log = opened(self.folder).retention.by_log
        assert by_log is not None
        return by_log.gap(since)


def at(days: float) -> int:
    return int(time.time() * 1000 - days * DAY_MS)


def gone(letter: str, days: float, folder: str = "p=a/", **more: Any) -> Mapping[str, Any]:
    return remove(name(letter, folder), deletionTimestamp=at(days), **more)


def change(path: str = CHANGES) -> Mapping[str, Any]:
    return {"cdc": {"path": path, "size": 100, "partitionValues": {}}}


def grown(folder: Path) -> SweptLog:
    """a, with a vector, and b gone 20 days ago, c 10 days ago, d yesterday; e stays. A killed writer left k."""
    log = SweptLog(folder)
    letters = [add(name(letter)) for letter in "bcde"]
    log.made(0, add(name("a"), deletionVector=MARKS), *letters, days=30)
    log.made(1, gone("a", 20, deletionVector=MARKS), gone("b", 20), change(), days=20)
    log.made(2, gone("c", 10), days=10)
    log.made(3, gone("d", 1), days=1)
    log.leave(name("k"), days=30)
    return log


def linked(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, link)
