"""Random lives of Delta tables: a foreign writer with vectors and delta-rs write beside our upkeep."""

import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta import hand_made
from tests.formats.delta.breaking import breaking
from tests.formats.delta.hand_made import HandMade, from_z85, rows_of
from tests.formats.delta.runs import opened, optimize
from tests.retention.lives import OWN, Life, wall_ms
from tests.support.faulty_store import Fuse

from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import OpenFiles

DAYS = ("2026-11-01", "2026-11-02")
HOUR_MS = DAY_MS // 24
_KNOWN = re.compile(
    r"(day=[^/]+/)?part-[^/]+\.parquet|deletion_vector_[0-9a-f-]{36}\.bin"
    r"|_delta_log/(\.staged-nk-.+|_commit_[0-9a-f-]{36}\.json\.tmp|\.[^/]+\.[0-9a-f-]{36}\.tmp)"
)


class DeltaLife(Life):
    grows = "_delta_log/"

    def __init__(self, seed: int, folder: Path, lakes: Lakes) -> None:
        super().__init__(seed, folder)
        self.lakes, self.oldest, self.ids = lakes, 0, 0
        self.short = self.random.random() < 0.7
        told = {"delta.deletedFileRetentionDuration": "interval 1 hours"} if self.short else {}
        with self.today():
            self.row_ids = self.random.random() < 0.3
            self.made = HandMade(folder, row_ids=self.row_ids, properties=told)
        self.append()

    @contextmanager
    def today(self) -> Iterator[None]:
        """Commits of the foreign writer are of now, as their files are."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hand_made, "NOW_MS", wall_ms() - 100)
            yield

    @contextmanager
    def one_clock(self) -> Iterator[None]:
        """delta-rs has the machine's clock, and our sweeps commit at a later time that lives set. Moves up its times.

        Otherwise a version is older than the one before it, which is no evidence for a sweep
        (`version_audit.Proof._of_another_time`, tested in test_evidence.py).
        """
        before = self.made.version
        yield
        latest_ms = max((info["commitInfo"]["timestamp"] for info in self.made.all("commitInfo")), default=0)
        for version in range(before + 1, self.made.version + 1):
            path = self.folder / f"_delta_log/{version:020d}.json"
            times, actions = path.stat(), [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for info in (action["commitInfo"] for action in actions if "commitInfo" in action):
                info["timestamp"] = max(info["timestamp"], latest_ms)
            path.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    # What the table is

    def opened(self) -> OpenFiles:
        return opened(self.folder).retention

    def breaking(self, fuse: Fuse) -> AbstractContextManager[None]:
        return breaking(fuse)

    def care(self, run_id: str) -> Outcome:
        rebuild = self.random.random() < 0.4
        operation = Operation.PERSIST_DELETES if rebuild else Operation.OPTIMIZE
        return optimize(self.folder, run_id=run_id, operation=operation, full=self.random.random() < 0.4).outcome

    def versions(self) -> Sequence[int]:
        return range(self.oldest, self.made.version + 1)

    def read(self, version: int) -> Any:
        rows = self.lakes.delta_rs_read(self.folder, version=version).rows
        if version == self.made.version:
            assert len(rows) == len(self.made.rows())
        return rows

    def retention_ms(self) -> int:
        return HOUR_MS if self.short else 7 * DAY_MS

    def forgets(self, now_ms: int, age_ms: int) -> None:
        since_ms = now_ms - max(age_ms, self.retention_ms())
        late = [version for version, at_ms in self.commits().items() if at_ms < since_ms]
        self.oldest = max([self.oldest, *late])

    def commits(self) -> dict[int, int]:
        """When each version's file was written."""
        found = (path for path in (self.folder / "_delta_log").glob("[0-9]*.json") if path.stem.isdecimal())
        return {int(path.stem): path.stat().st_mtime_ns // 1_000_000 for path in found}

    def needed(self) -> set[str]:
        found = {str(path.relative_to(self.folder)) for path in (self.folder / "_delta_log").glob("[0-9]*")}
        for add in self.made.live().values():
            found |= self.named(add)
        return found

    def protected(self, now_ms: int, age_ms: int) -> set[str]:
        """What was removed late, by whatever tells the latest time, unless that is still to come: then by files."""
        since_ms, found = now_ms - max(age_ms, self.retention_ms()), set[str]()
        for version, at_ms in self.commits().items():
            lines = (self.folder / f"_delta_log/{version:020d}.json").read_text(encoding="utf-8").splitlines()
            actions = [json.loads(line) for line in lines]
            infos = [action["commitInfo"] for action in actions if "commitInfo" in action]
            told = [info[key] for info in infos for key in ("timestamp", "inCommitTimestamp") if key in info]
            for remove in (action["remove"] for action in actions if "remove" in action):
                times = [time for time in (*told, remove.get("deletionTimestamp", 0)) if time <= now_ms]
                if max([at_ms, *times]) >= since_ms:
                    found |= self.named(remove)
        return found

    def named(self, action: dict[str, Any]) -> set[str]:
        vector = action.get("deletionVector")
        if vector is None or vector["storageType"] != "u":
            return {unquote(action["path"])}
        return {unquote(action["path"]), _vector(vector["pathOrInlineDv"])}

    def is_known(self, name: str) -> bool:
        return bool(_KNOWN.fullmatch(name))

    def plants(self) -> Sequence[str]:
        day = f"day={self.random.choice((*DAYS, 'gone', '__HIVE_DEFAULT_PARTITION__'))}/"
        return [
            f"{day}part-00000-{self.uuid()}.c000.snappy.parquet",
            f"deletion_vector_{self.uuid()}.bin",
            f"_delta_log/_commit_{self.uuid()}.json.tmp",
            f"_delta_log/.00000000000000000099.json.{self.uuid()}.tmp",
        ]

    def strange(self) -> Sequence[str]:
        return [f"notes-{self.number()}.txt", f"{OWN}note-{self.number()}", f"_hidden/part-{self.number()}.parquet"]

    # Steps

    def others(self) -> Sequence[Callable[[], object]]:
        found = [self.append, self.append, self.delete, self.delete, self.checkpoint, self.leave, self.plant]
        # delta-rs does not write tables with row ids.
        return [*found, *([] if self.row_ids else [self.add, self.pack, self.lose])]

    def append(self) -> None:
        start, self.ids = self.ids, self.ids + self.random.randrange(1, 40)
        with self.today():
            self.made.append(self.random.choice((*DAYS, None)), range(start, self.ids))

    def delete(self) -> None:
        """Some rows by vectors, or all of a file's."""
        since = self.random.choice((0, self.ids - 20))
        gone = [number for number in range(max(since, 0), self.ids) if self.random.random() < 0.5]
        with self.today():
            self.made.delete(self.random.choice(DAYS), gone)

    def checkpoint(self) -> None:
        with self.today():
            self.made.checkpoint()

    def leave(self) -> None:
        """A writer dies before it commits a file, or vectors."""
        with self.today():
            if self.random.random() < 0.5:
                self.made.written(self.random.choice(DAYS), range(3))
            else:
                self.made.vectors({})

    def add(self) -> None:
        rows = rows_of(range(5)).append_column("day", pa.nulls(5, pa.date32()))
        with self.one_clock():
            self.lakes.delta_rs_append(self.folder, rows)

    def pack(self) -> None:
        with self.one_clock():
            self.lakes.delta_rs_optimize(self.folder)

    def lose(self) -> None:
        """delta-rs writes, and another one commits first what it cannot live with."""
        handle = self.lakes.open(self.folder)
        with self.today():
            self.made.delete(DAYS[0], range(self.ids))
        with self.one_clock(), suppress(EngineError):
            self.lakes.delta_rs_optimize(handle)

    def engine_expires(self) -> None:
        """delta-rs deletes all that the newest version does not need."""
        if self.row_ids:
            return
        with self.one_clock():
            self.lakes.delta_rs_vacuum(self.folder, retention_hours=0, dry_run=False)
        self.oldest = self.made.version


def _vector(place: str) -> str:
    """PROTOCOL.md, "Deletion Vector Descriptor Schema": a prefix, and a UUID in Base85."""
    prefix, unique = place[:-20], uuid.UUID(bytes=from_z85(place[-20:]))
    return f"{prefix}/deletion_vector_{unique}.bin".lstrip("/")
