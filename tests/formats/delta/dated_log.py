"""Delta tables with a commit a day and no checkpoint, for the upkeep of their logs."""

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from tests.formats.delta.checkpointed import checkpointed, run_at
from tests.formats.delta.hand_log import HandLog, add, remove
from tests.formats.delta.runs import opened

from nightkeep.formats.delta.upkeep.log_cleanup import carry_out_upkeep, plan_upkeep
from nightkeep.model import Address
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.log_upkeep import LogPlan, LogRequest, LogResult
from nightkeep.storage import LocalStorage, Storage

NOON = 1_795_003_200_000 // DAY_MS * DAY_MS + DAY_MS // 2
DAYS = 50
"""Commits of a log, a day apart, the last of today. Those of more than 30 days before today's midnight have expired."""
EXPIRED = DAYS - 1 - 31
"""The newest commit before the cutoff."""


_SINK = io.BytesIO()
pq.write_table(pa.table({"id": range(10)}), _SINK)
_PARQUET: Final = _SINK.getvalue()
"""The content of every file."""


@dataclass
class DatedLog(HandLog):
    """A table with a commit each day up to today; each adds a file and, from the third on, removes an older one, unless
    it `keeps` all."""

    keeps: bool = False

    def made(self, version: int, *actions: Mapping[str, Any], **info: Any) -> None:
        at_ms = at(version)
        for action in actions:
            if "add" in action:
                (self.folder / action["add"]["path"]).write_bytes(_PARQUET)
        head = self.head if version == 0 else []
        self.commit(version, {"commitInfo": {"timestamp": at_ms, **info}}, *head, *actions)
        touch(self.log / f"{version:020d}.json", at_ms)

    def grow(self, days: int = DAYS) -> None:
        self.log.mkdir(parents=True)
        for version in range(days):
            removes = version >= 3 and not self.keeps
            old = [remove(f"f{version - 3}.parquet", deletionTimestamp=at(version))] if removes else []
            self.made(version, added(version), *old)

    @property
    def names(self) -> set[str]:
        return {path.name for path in self.log.iterdir() if path.is_file()}

    def plan(self, **asked: Any) -> LogPlan:
        return plan_upkeep(self.address, LocalStorage(str(self.folder)), LogRequest(NOON, **asked))

    def tend(self, *, storage: Storage | None = None, **asked: Any) -> LogResult:
        store = storage or LocalStorage(str(self.folder))
        return carry_out_upkeep(self.address, store, LogRequest(NOON, **asked), run_at(NOON))

    @property
    def address(self) -> Address:
        return Address("delta", str(self.folder), "logged")

    def content(self, version: int | None = None) -> str:
        return opened(self.folder).snapshot(version).identity.content

    def checkpoint(self, version: int) -> None:
        """A checkpoint of ours as if it was written on the day of the version."""
        assert checkpointed(self.folder, version=version, now_ms=at(version)) is not None
        for path in self.log.glob(f"{version:020d}.checkpoint*"):
            touch(path, at(version))


def added(version: int) -> Mapping[str, Any]:
    """The add of the file that a version brings."""
    return add(f"f{version}.parquet", size=len(_PARQUET))


def at(version: int) -> int:
    return NOON - (DAYS - 1 - version) * DAY_MS


def touch(path: Path, at_ms: int) -> None:
    os.utime(path, ns=(at_ms * 1_000_000,) * 2)


def commit_names(first: int, last: int = DAYS) -> set[str]:
    return {f"{version:020d}.json" for version in range(first, last)}
