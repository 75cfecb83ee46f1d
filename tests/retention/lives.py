"""Random lives of tables, of any format: whatever was swept, expired or restored, what was read once is read again.

A step of a life is an engine's, a run of ours or of upkeep. Clocks of upkeep are set to a moment of this life plus an
age: what was written before is old then, all else is young.
"""

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from tests.support.faulty_store import Fuse, Point, fail

from nightkeep.errors import NightkeepError
from nightkeep.model import Operation, Outcome, Run, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, OpenFiles, Retention
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import purge, restore
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

OWN = "_nightkeep/"
AGES = (7 * DAY_MS, DAY_MS // 24)
Step = Callable[[], object]


class Died(BaseException):
    """No handler of errors sees it, as none sees the death of a process."""


def die(point: Point) -> NoReturn:
    raise Died(str(point))


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class File:
    digest: bytes
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Aside:
    """What a sweep quarantined, by the runs that it took, the first of which may have died."""

    runs: tuple[str, ...]
    files: Mapping[str, File]


class Life(ABC):
    """One table. `folder` is its own; names are relative to it."""

    grows = ""
    """The folder in which upkeep itself makes versions, in which nothing changes; empty if it makes none."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random, self.folder = Random(seed), folder
        self.seen: dict[Any, Any] = {}
        self.told: list[str] = []
        self.moments: list[int] = []
        self.aside: list[Aside] = []
        self.planted: set[str] = set()
        self.runs = self.attempts = self.removed = 0

    # What a format tells

    @abstractmethod
    def others(self) -> Sequence[Step]:
        """What engines do, leftovers among it; a step may occur repeatedly."""

    @abstractmethod
    def care(self, run_id: str) -> Outcome:
        """A run of ours of any kind; `run_id` is its own."""

    @abstractmethod
    def engine_expires(self) -> None: ...

    @abstractmethod
    def opened(self) -> OpenFiles: ...

    @abstractmethod
    def breaking(self, fuse: Fuse) -> AbstractContextManager[None]: ...

    @abstractmethod
    def versions(self) -> Sequence[Any]:
        """Keys of what readers may ask for now, the newest of the main branch last."""

    @abstractmethod
    def read(self, version: Any) -> Any: ...

    @abstractmethod
    def needed(self) -> set[str]:
        """Files that readers of any version open, by an obvious way to read metadata."""

    def protected(self, now_ms: int, age_ms: int) -> set[str]:
        """Files that stay for another reason."""
        return set()

    @abstractmethod
    def is_known(self, name: str) -> bool:
        """Whether an engine would have given the name."""

    @abstractmethod
    def plants(self) -> Sequence[str]:
        """Names that killed writers would have used; new ones by each call."""

    def strange(self) -> Sequence[str]:
        """Names that nobody can say anything about."""
        return [f"notes-{self.number()}.txt", f"{OWN}notes-{self.number()}.txt"]

    def request(self, now_ms: int, age_ms: int, *, retain_last: int | None) -> ExpireRequest:
        return ExpireRequest(now_ms, retain_last=retain_last)

    def forgets(self, now_ms: int, age_ms: int) -> None:  # noqa: B027 - most tables forget nothing by themselves
        """Upkeep at that time no longer keeps versions that the table's own retention does not."""

    # Steps

    @abstractmethod
    def leave(self) -> object:
        """An engine writes files and dies before it commits them."""

    def plant(self) -> None:
        for name in [*self.random.sample(list(self.plants()), 2), self.random.choice(list(self.strange()))]:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # Where it has a name of metadata, it is metadata that was never finished.
            path.write_bytes(b'{"left over')
            self.planted.add(name)

    def care_breaks(self) -> None:
        """Perhaps it is tried again."""
        self.runs += 1
        fuse = Fuse(self.random.randrange(1, 40), self.random.choice((fail, die)))
        with self.dying(fuse):
            self.care(f"broken {self.runs}")
        if self.random.random() < 0.5:
            assert self.care(f"broken {self.runs}") in (Outcome.VERIFIED, Outcome.UNCHANGED)

    def care_whole(self) -> None:
        self.runs += 1
        assert self.care(f"run {self.runs}") in (Outcome.VERIFIED, Outcome.UNCHANGED)

    @contextmanager
    def dying(self, fuse: Fuse) -> Iterator[None]:
        with self.breaking(fuse):
            try:
                yield
            except Died as death:
                self.told[-1] += f" (died {death})"

    def sweep(self) -> None:
        """In either mode, at any moment of this life; perhaps another one died before."""
        for _ in range(self.random.randrange(3)):
            self.random.choice((self.leave, self.plant))()
            self.moments.append(wall_ms())
        self.sweep_at(*self.moment())

    def sweep_all(self) -> None:
        """Whatever is left by now."""
        self.plant()
        age_ms = self.random.choice(AGES)
        self.sweep_at(wall_ms() + 1 + age_ms, age_ms)
        assert self.removed

    def sweep_at(self, now_ms: int, age_ms: int) -> None:
        mode = self.random.choice((SweepMode.QUARANTINE, SweepMode.QUARANTINE, SweepMode.DELETE))
        order = SweepOrder(mode, older_than_ms=age_ms, below_floor=True, max_share=1.0)
        before, needed, stays = self.files(), self.needed(), self.protected(now_ms, age_ms)
        going = {
            name
            for name, file in before.items()
            if file.modified_ms < now_ms - age_ms and self.is_known(name) and name not in needed | stays
        }
        head = self.read(self.versions()[-1])
        self.forgets(now_ms, age_ms)
        self.runs += 1
        runs = [f"sweep {self.runs}"]
        self.told[-1] += f" {mode}, {len(going)} of {len(before)} to go"
        if going and self.random.random() < 0.4:
            with self.dying(Fuse(self.random.randrange(1, 10 + 4 * len(going)), die)):
                self.swept(order, runs[0], now_ms)
            self.check()
            runs += [] if self.random.random() < 0.5 else [f"sweep {self.runs} again"]
        done = self.swept(order, runs[-1], now_ms)
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
        after = self.files()
        assert before.keys() - after.keys() == going, ("gone", before.keys() - after.keys(), "expected", going)
        assert needed <= after.keys()
        assert self.same(before, after)
        assert self.read(self.versions()[-1]) == head
        self.removed += len(going)
        self.planted -= going
        self.check()
        if mode is SweepMode.QUARANTINE and going:
            self.aside.append(Aside(tuple(dict.fromkeys(runs)), {name: before[name] for name in going}))
            if self.random.random() < 0.4:
                self.told[-1] += ", back at once"
                self.restore()
                assert self.same(before, self.files()) and before.keys() <= self.files().keys()

    def restore(self) -> None:
        """What the last sweep quarantined, as it was."""
        aside, before = self.aside.pop(), self.files()
        back = 0
        for run_id in aside.runs:
            try:
                found = restore(self.opened().table_files(), run_id, now_ms=wall_ms())
            except NightkeepError as failure:
                # The one that died had put nothing aside.
                assert len(aside.runs) == 2, failure
                continue
            assert found.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), found
            back += found.files
        assert self.files() == {**before, **aside.files}
        assert back == len(aside.files)
        self.check()

    def purge(self) -> None:
        before = self.files()
        purge(self.opened().table_files(), now_ms=wall_ms() + 100 * DAY_MS, older_than_ms=0)
        assert self.files() == before
        assert not list((self.folder / OWN / "quarantine").rglob("*.file"))
        self.aside.clear()
        self.check()

    def engine(self) -> None:
        """Its own expiry."""
        self.engine_expires()
        self.check()

    def expire(self) -> None:
        """Ours, mostly of all that may go by now; what was left over it does not see."""
        age_ms = self.random.choice((*AGES, max(AGES), max(AGES)))
        now_ms = age_ms + self.random.choice((self.random.choice(self.moments), wall_ms() + 1, wall_ms() + 1))
        self.runs += 1
        mode = self.random.choice((SweepMode.DELETE, SweepMode.QUARANTINE))
        request = self.request(now_ms, age_ms, retain_last=self.random.choice((None, None, 1, 2)))
        order = ExpireOrder(mode, request, Retention(now_ms, age_ms))
        before, versions, sets = self.files(), self.versions(), list[MemorySets]()

        def fresh() -> MemorySets:
            sets.append(MemorySets())
            return sets[-1]

        run = self.run(f"expiry {self.runs}", Operation.EXPIRE, now_ms)
        with self.dying(self.fuse(0.2, 40)):
            done = expire_versions(self.opened(), order, run, sets=fresh, before=lambda *_: None)
            assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
            self.told[-1] += f" {len(done.expiry.roots)} roots, {done.acted.gone.files} files"
        for each in sets:
            each.close()
        self.forgets(now_ms, 0)
        after = self.files()
        assert self.grows or {*self.versions()} <= {*versions}
        assert self.needed() <= after.keys()
        assert self.planted & before.keys() <= after.keys()
        self.check()

    # What must hold

    def check(self) -> None:
        """Every version that is still there has the rows that it had when it was seen first."""
        self.watch()
        for version in self.versions():
            rows, known = self.read(version), self.seen[version]
            assert rows == known, f"version {version}: expected {known}, found {rows}"

    def watch(self) -> None:
        """See what is new."""
        versions = self.versions()
        assert versions
        for version in versions:
            if version not in self.seen:
                self.seen[version] = self.read(version)

    def files(self) -> dict[str, File]:
        """All below the table's folder but what is quarantined, by name."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {
            name: File(hashlib.blake2b(path.read_bytes()).digest(), path.stat().st_mtime_ns // 1_000_000)
            for path in found
            if not (name := str(path.relative_to(self.folder))).startswith(f"{OWN}quarantine/")
            and not name.startswith(f"{OWN}clock-")
        }

    def same(self, before: Mapping[str, File], after: Mapping[str, File]) -> bool:
        """Whether no file of `after` is changed or new, except what upkeep writes into the history."""
        new = (name for name in after.keys() - before.keys() if not (self.grows and name.startswith(self.grows)))
        return all(before[name] == after[name] for name in before.keys() & after.keys()) and not any(new)

    # Parts

    def swept(self, order: SweepOrder, run_id: str, now_ms: int) -> SweepResult:
        with closing(MemorySets()) as sets:
            return sweep_table(self.opened(), order, self.run(run_id, Operation.SWEEP, now_ms), sets=sets)

    def run(self, run_id: str, operation: Operation, now_ms: int) -> Run:
        """Another attempt each time."""
        self.attempts += 1
        return Run(run_id, run_token(run_id, operation), f"a{self.attempts}", now_ms)

    def moment(self) -> tuple[int, int]:
        """When upkeep runs, and how old files must be: they must have been there at a moment of this life."""
        latest = wall_ms() + 1
        at_ms, age_ms = self.random.choice([*self.moments, *[latest] * len(self.moments)]), self.random.choice(AGES)
        return at_ms + age_ms, age_ms

    def fuse(self, chance: float, points: int) -> Fuse:
        return Fuse(self.random.randrange(1, points), die) if self.random.random() < chance else Fuse()

    def number(self) -> int:
        return self.random.randrange(10**9)

    def uuid(self) -> str:
        digits = f"{self.random.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def live(life: Life, seed: int, *, steps: int) -> None:
    """Every step, then a sweep of all that is left; a failure tells the steps."""
    try:
        for _ in range(steps):
            way_back = [life.restore, life.restore, life.purge] if life.aside else []
            upkeep = [*[life.sweep] * 4, life.expire, life.expire, life.engine, *way_back]
            kinds: Sequence[Sequence[Step]] = (
                life.others(),
                life.others(),
                [life.care_whole, life.care_breaks],
                upkeep,
            )
            _take(life, life.random.choice(life.random.choice((*kinds, upkeep))))
        _take(life, life.sweep_all)
    except Exception as failure:
        raise AssertionError(f"seed {seed}: {'; '.join(life.told)}") from failure


def _take(life: Life, step: Step) -> None:
    life.told.append(getattr(step, "__name__", str(step)))
    life.moments.append(wall_ms())
    step()
    life.watch()
