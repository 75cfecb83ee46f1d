"""A table of the simplest format there is, in a real folder: snapshots name lists, lists name data files.

meta/s-<n>.json    {"lists": ["meta/l-<name>.json", ...]}
meta/l-<name>.json {"data/...": bytes, ...}
data/**/*.dat
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Address, Run
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import (
    ExpireRequest,
    Expiry,
    FileKind,
    Reach,
    Removal,
    RemovalEntries,
    RetainedFiles,
    Retention,
    Root,
    TableFiles,
    TableFolder,
    files_table,
)
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table
from nightkeep.storage import LocalStorage, Storage

NOW = 1_795_305_600_000
KINDS = (FileKind("list", r"meta/l-[^/]*\.json"), FileKind("data", r"data/(?:[^/]+/)*[^/]+\.dat"))
NESTED = (r"(.+)/meta/s-\d+\.json",)


def run_of(run_id: str, *, attempt: str = "a1", now_ms: int = NOW) -> Run:
    return Run(run_id, "0123456789abcdef", attempt, now_ms)


@dataclass
class Toy:
    """The double; `before_roots` is called before each look at the roots, with its number."""

    storage: Storage
    places: tuple[TableFolder, ...] = (TableFolder("", KINDS),)
    by_bare_name: bool = False
    before_roots: Callable[[int], None] = lambda look: None
    before_reach: Callable[[Root], None] = lambda root: None
    looks: int = 0
    opened: list[object] = field(default_factory=list)

    @classmethod
    def at(cls, folder: Path, **settings: Any) -> "Toy":
        folder.mkdir(parents=True, exist_ok=True)
        return cls(LocalStorage(str(folder)), **settings)

    @property
    def folder(self) -> Path:
        return Path(self.storage.root)

    def table_files(self) -> TableFiles:
        table = Address("toy", self.storage.root, "toy")
        return TableFiles(table, self.storage, "", self.places, NESTED, by_bare_name=self.by_bare_name)

    def roots(self, retention: Retention) -> tuple[Root, ...]:
        self.looks += 1
        self.before_roots(self.looks)
        names = [stored.name for stored in self.storage.list("meta")]
        return tuple(Root(name, name) for name in names if name.startswith("meta/s-"))

    def reach(self, root: Root) -> Reach:
        self.before_reach(root)
        content = self._json(root.id)
        return Reach(files_table([root.id, *content["lists"]]), tuple(content["lists"]))

    def live(self, source: object) -> Iterator[pa.RecordBatch]:
        self.opened.append(source)
        files = self._json(str(source))
        yield from files_table(list(files), sizes=list(files.values())).to_batches()

    def expiry(self, request: ExpireRequest) -> Expiry[Any]:
        return Expiry(())

    @property
    def removals(self) -> RemovalEntries | None:
        return None

    @property
    def retention(self) -> RetainedFiles[Any, Any]:
        return RetainedFiles(self.table_files, self.roots, self.reach, self.live, self.expiry, self.removals)

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self.storage.read(name))
        except ValueError:
            raise CorruptMetadata(name, "JSON", "something else") from None
        return content

    def write(self, *names: str, days: float = 30) -> None:
        """Data files nobody names, each with content of its own, so old."""
        for name in names:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"content of {name}")
            age(path, days)

    def commit(self, number: int, *names: str, days: float = 30) -> None:
        """A snapshot with one list of its own, of files that are there."""
        content = {name: (self.folder / name).stat().st_size for name in names}
        for name, value in (
            (f"meta/l-{number}.json", content),
            (f"meta/s-{number}.json", {"lists": [f"meta/l-{number}.json"]}),
        ):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(value))
            age(path, days)

    def forget(self, number: int) -> None:
        (self.folder / f"meta/s-{number}.json").unlink()

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Content and time of each file that is at home."""
        return {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.folder.rglob("*")
            if path.is_file() and "_nightkeep" not in path.parts
        }

    def aside(self) -> list[tuple[bytes, int]]:
        """Content and time of each file in quarantine."""
        found = sorted((self.folder / "_nightkeep").rglob("*.file"))
        return [(path.read_bytes(), path.stat().st_mtime_ns) for path in found]

    def swept(self, mode: SweepMode = SweepMode.DRY_RUN, run_id: str = "run-1", **settings: Any) -> SweepResult:
        return self.looked(mode, run_id, **settings)[0]

    def looked(
        self, mode: SweepMode = SweepMode.DRY_RUN, run_id: str = "run-1", **settings: Any
    ) -> tuple[SweepResult, list[str]]:
        """What a sweep says, and the orphans it found."""
        attempt, now_ms = settings.pop("attempt", "a1"), settings.pop("now_ms", NOW)
        more = {name: settings.pop(name) for name in ("clock", "before") if name in settings}
        sets, run = MemorySets(), run_of(run_id, attempt=attempt, now_ms=now_ms)
        told = sweep_table(self.retention, SweepOrder(mode, **settings), run, sets=sets, **more)
        return told, [name for batch in sets.orphans() for name in batch["name"].to_pylist()]


@dataclass
class ToyWithHistory(Toy):
    """A table whose announcements are snapshots, as those of Delta are."""

    told: list[tuple[str, Removal]] = field(default_factory=list)

    @property
    def removals(self) -> RemovalEntries:
        return RemovalEntries(self.announce, self.conclude)

    def announce(self, removal: Removal, run: Run) -> None:
        self.told.append(("announce", removal))
        self.commit(901, days=0)

    def conclude(self, removal: Removal, run: Run) -> None:
        self.told.append(("conclude", removal))


def age(path: Path, days: float) -> None:
    seconds = (NOW - int(days * DAY_MS)) // 1000
    os.utime(path, (seconds, seconds))
