"""Submitted to a cluster: upgrade one table and print who ran the units and what the driver itself read."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from nightkeep.admission.order import Order
from nightkeep.formats.paimon import format as paimon
from nightkeep.model import Operation
from nightkeep.policy import load
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.spark.engine import Engine
from nightkeep.storage import ListedFile, Storage
from nightkeep.storage.verbs import always


@dataclass(frozen=True)
class RecordingStorage:
    """A store that remembers what was opened in this process; a copy sent to an executor remembers for itself."""

    inner: Storage
    opened: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        return self.inner.root

    def read(self, name: str) -> bytes:
        self.opened.append(name)
        return self.inner.read(name)

    def open(self, name: str) -> pa.NativeFile:
        self.opened.append(name)
        return self.inner.open(name)

    def exists(self, name: str) -> bool:
        return self.inner.exists(name)

    def stat(self, name: str) -> ListedFile | None:
        return self.inner.stat(name)

    def list(self, folder: str) -> tuple[ListedFile, ...]:
        return self.inner.list(folder)

    def folders(self, folder: str) -> tuple[str, ...]:
        return self.inner.folders(folder)

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        return self.inner.walk(folder)

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self.inner.create(name)

    def put(self, name: str, data: bytes) -> None:
        self.inner.put(name, data)

    def put_if_absent(self, name: str, data: bytes, *, temporary: str, may_go: Callable[[], bool] = always) -> bool:
        return self.inner.put_if_absent(name, data, temporary=temporary, may_go=may_go)

    def replace(self, name: str, data: bytes, *, temporary: str) -> None:
        self.inner.replace(name, data, temporary=temporary)

    def move(self, name: str, to: str, *, may_go: Callable[[], bool] = always) -> bool:
        return self.inner.move(name, to, may_go=may_go)

    def delete(self, name: str) -> bool:
        return self.inner.delete(name)

    def delete_all(self, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        return self.inner.delete_all(names)


def main(table: str, reports: str) -> None:
    driver_store: list[RecordingStorage] = []
    inner = paimon.open_storage  # type: ignore[attr-defined]

    def recording(location: str) -> RecordingStorage:
        driver_store.append(RecordingStorage(inner(location)))
        return driver_store[-1]

    paimon.open_storage = recording  # type: ignore[assignment, attr-defined]
    policy = load("tables.yaml", text="version: 1").effective(f"paimon:{table}")
    order = Order(Operation.UPGRADE, "standalone", reports)
    with Engine(master="unused: spark-submit names it", task_memory_bytes=512 << 20) as engine:
        document = run_operation(policy, order, mapper=engine.mapper)
    opened = [name for store in driver_store for name in store.opened]
    print(json.dumps({"document": document.to_json(), "driver_opened": opened}))


if __name__ == "__main__":
    main(*sys.argv[1:])
