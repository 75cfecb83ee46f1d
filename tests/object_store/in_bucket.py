"""A table in a bucket or in HDFS, cared for in one process without Spark."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Run, run_token
from nightkeep.policy import load
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.storage import open_storage
from nightkeep.tasks import inline


@dataclass(frozen=True)
class InBucket:
    """A table by its location; `commits` is the folder of its versions and `version` matches the name of one."""

    location: str
    operation: Operation
    commits: str
    reports: Path

    @property
    def format(self) -> str:
        return "delta" if self.commits == "_delta_log" else "paimon"

    @property
    def key(self) -> str:
        """The location without its bucket, which for tests is s3://BUCKET or the like."""
        return self.location.split("/", 3)[3]

    def care(self, run_id: str | None = None, **settings: object) -> RunDocument:
        text = yaml.safe_dump({"version": 1, "defaults": {"writers": "conditional", **settings}})
        policy = load("tables.yaml", text=text).effective(f"{self.format}:{self.location}")
        order = Order(self.operation, run_id or f"test-{uuid.uuid4().hex}", str(self.reports))
        return run_operation(policy, order, mapper=lambda: inline)

    def put(self, version: int) -> str:
        """A pattern of the request that commits a version."""
        return f"PUT .*/{self.commits}/{self.name(version)}$"

    def name(self, version: int) -> str:
        return f"{version:020d}.json" if self.format == "delta" else f"snapshot-{version}"

    def latest(self) -> int:
        return open_table(self.address).snapshot().version

    @property
    def address(self) -> Address:
        return Address(self.format, self.location, "t")

    def names(self) -> set[str]:
        return {file.name for batch in open_storage(self.location).walk("") for file in batch}

    def files_of(self, run_id: str) -> set[str]:
        token = run_token(run_id, self.operation)
        return {name for name in self.names() if token in name}

    def committed(self, run_id: str) -> list[int]:
        run = Run(run_id, run_token(run_id, self.operation), "0", time.time_ns() // 1_000_000)
        return [commit.version for commit in open_table(self.address).commits.committed(run)]


@contextmanager
def another_process(table: InBucket, run_id: str) -> Iterator[None]:
    """One that cares for the table, until it is killed at the end of the block.

    A program of its own: of a fork, threads of the libraries that the parent has loaded may be missed.
    """
    command = [sys.executable, "-m", "tests.object_store.in_bucket", table.location, table.operation, table.commits]
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (_ROOT, _ROOT / "jobs")))}
    process = subprocess.Popen([*command, str(table.reports), run_id], cwd=_ROOT, env={**os.environ, **paths})
    try:
        yield
    finally:
        process.kill()
        process.wait(60)


_ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    InBucket(sys.argv[1], Operation(sys.argv[2]), sys.argv[3], Path(sys.argv[4])).care(sys.argv[5])
