"""New files of one task -> each becomes durable while the next one is written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from nightkeep.storage.verbs import Storage


@contextmanager
def overlapped(storage: Storage) -> Iterator[Storage]:
    """The store for writers of data files, which only create files. All are durable once the context is left.

    Raises what creating a file raises, perhaps only when the next one is created or at the end. A disk takes some
    milliseconds to make a file durable, a bucket to end its upload: 8 MB are encoded meanwhile.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="nightkeep-durable") as aside:
        files = _Files(storage, aside)
        yield cast(Storage, files)
        files.wait()


@dataclass(slots=True)
class _Files:
    """At most one file is written, and one becomes durable."""

    storage: Storage
    aside: ThreadPoolExecutor
    ending: list[Future[None]] = field(default_factory=list)

    @property
    def root(self) -> str:
        return self.storage.root

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        with ExitStack() as whole:
            yield whole.enter_context(self.storage.create(name))
            written = whole.pop_all()
        try:
            self.wait()
        finally:
            self.ending.append(self.aside.submit(written.close))

    def wait(self) -> None:
        while self.ending:
            self.ending.pop().result()
