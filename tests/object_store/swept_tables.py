"""Tables of every format in a bucket, with leftovers planted among their files, and sweeps and expiries of them here.

Names are those of storage, which of Iceberg tables are the bucket's. A store gives objects the time of their request;
what is to be old is made so behind the server.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.drivers.s3_server import Bucket
from tests.object_store.bucket_tables import SAMPLES, upload

from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Run, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, OpenFiles, Retention
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.file_check import FileCheck, check_files
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.orphans.sweep_request import RestoreResult, SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

GOLDEN = Path(__file__).parents[1] / "golden" / "delta"
UUID = "c2d8813c-5e9f-4ab4-8fad-662173002a2f"
OLD_DAYS = 30


@dataclass(frozen=True)
class InStore:
    """A table; `root` is the folder behind the server that its storage is, `home` the table's name in it."""

    address: Address
    bucket: Path
    root: Path
    home: str = ""

    @property
    def opened(self) -> OpenFiles:
        found = open_table(self.address).retention
        assert found is not None
        return found

    @property
    def folder(self) -> Path:
        return self.root / self.home

    def plant(self, *names: str, days: float = OLD_DAYS) -> set[str]:
        """Objects below the table that nobody names, so old."""
        storage = self.opened.table_files().storage
        found = {f"{self.home}/{name}".removeprefix("/") for name in names}
        for name in found:
            storage.put(name, f"left: {name}".encode())
        self.age(found, days=days)
        return found

    def age(self, names: Iterable[str], *, days: float = OLD_DAYS) -> None:
        then = time.time() - days * 24 * 3600
        for name in names:
            os.utime(self.root / name, (then, then))

    def files(self) -> dict[str, bytes]:
        """What the table's folder has, but for what is quarantined."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and "_nightkeep" not in path.parts
        }

    def aside(self) -> list[bytes]:
        return sorted(path.read_bytes() for path in self.folder.glob("_nightkeep/**/*.file"))

    def quarantines(self) -> set[str]:
        """Runs that have put files aside."""
        plans = self.folder.glob("_nightkeep/quarantine/*/plan-*")
        return {str(json.loads(path.read_text().partition("\n")[0])["run_id"]) for path in plans}

    def swept(
        self, mode: SweepMode = SweepMode.DRY_RUN, run_id: str = "weekly", **order: Any
    ) -> tuple[SweepResult, set[str]]:
        """What a sweep says, and its orphans."""
        with closing(MemorySets()) as sets:
            asked = SweepOrder(mode, **{"max_share": 1.0, **order})
            told = sweep_table(self.opened, asked, _run(run_id, Operation.SWEEP), sets=sets)
            return told, {name for batch in sets.orphans() for name in batch["name"].to_pylist()}

    def restored(self, run_id: str = "weekly") -> RestoreResult:
        return restore(self.opened.table_files(), run_id, now_ms=_now_ms())

    def expired(self, *, days: int = 30) -> ExpiryResult:
        """Of all versions but the last, as if it were so many days later."""
        now_ms = _now_ms() + days * DAY_MS
        order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms, retain_last=1), Retention(now_ms, 0))
        run = _run("monthly", Operation.EXPIRE)
        with closing(MemorySets()) as sets:
            return expire_versions(self.opened, order, run, sets=lambda: sets, before=lambda _: None)

    def presence(self) -> FileCheck:
        return check_files(self.opened, Retention(_now_ms(), 7 * DAY_MS), sets=MemorySets, salt="s")


def swept_now(address: Address, mode: SweepMode) -> SweepResult:
    """Of what is older than this moment."""
    opened = open_table(address).retention
    assert opened is not None
    order = SweepOrder(mode, older_than_ms=0, below_floor=True)
    with closing(MemorySets()) as sets:
        return sweep_table(opened, order, _run("weekly", Operation.SWEEP), sets=sets)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _run(run_id: str, operation: Operation) -> Run:
    return Run(run_id, run_token(run_id, operation), "a1", _now_ms())


def delta(bucket: Bucket, *, golden: str) -> InStore:
    """Below a name with a space; delta-spark wrote it."""
    uri = upload(GOLDEN / golden / "table", bucket, "delta a b")
    return InStore(Address("delta", uri, "t"), bucket.folder, bucket.folder / "delta a b")


def paimon(
    bucket: Bucket, scratch: Path, *, name: str = "positions", options: Mapping[str, str] | None = None
) -> InStore:
    """A sample below a name with all that URIs spell otherwise; with more options of the table."""
    copy = Path(shutil.copytree(SAMPLES / "paimon" / "shop.db" / name, scratch / name))
    schema = max(copy.glob("schema/schema-*"))
    content = json.loads(schema.read_bytes())
    content["options"] |= options or {}
    schema.write_text(json.dumps(content))
    prefix = "shop%20.db/a+b \u00e4"
    return InStore(Address("paimon", upload(copy, bucket, prefix), "t"), bucket.folder, bucket.folder / prefix)


def iceberg(bucket: Bucket, table: str) -> InStore:
    """One that the catalog `lake` has, below `lake/shop` of the bucket."""
    return InStore(Address("iceberg", f"lake/shop.{table}", table), bucket.folder, bucket.folder, f"lake/shop/{table}")
