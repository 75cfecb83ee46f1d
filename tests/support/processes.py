"""Processes of tests: forked from a server that has imported the library already, so that one costs milliseconds.

Every wait is bounded, and whatever was started is ended, by its own id.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

SECONDS = 60
PROCESS = multiprocessing.get_context("forkserver")
_BREAKING = (
    "tests.formats.delta.breaking",
    "tests.formats.iceberg.breaking",
    "tests.mutations.fuzzing",
    "tests.formats.paimon.breaking",
    "tests.formats.delta.killed_upkeep",
    "tests.retention.killed_sweep",
)
PROCESS.set_forkserver_preload(["pytest", *_BREAKING])


class Child:
    """A process with a pipe. `hear` and `end` fail after a minute rather than wait for ever."""

    def __init__(self, process: ForkServerProcess, pipe: Connection) -> None:
        self._process, self._pipe = process, pipe

    def hear(self) -> Any:
        """The next thing the child says."""
        assert self._pipe.poll(SECONDS), f"process {self._process.pid}: expected a word, found none in {SECONDS} s"
        return self._pipe.recv()

    def say(self, word: object) -> None:
        self._pipe.send(word)

    def end(self) -> int:
        """Its exit status once it ended by itself; negative for a signal."""
        self._process.join(SECONDS)
        assert self._process.exitcode is not None, f"process {self._process.pid}: expected its end"
        return self._process.exitcode

    def stop(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join(SECONDS)
        self._pipe.close()


@contextmanager
def child(work: Callable[..., None], *arguments: object) -> Iterator[Child]:
    """`work(pipe, *arguments)` in a process of its own; both must be importable or picklable."""
    ours, theirs = PROCESS.Pipe()
    process = PROCESS.Process(target=work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    running = Child(process, ours)
    try:
        yield running
    finally:
        running.stop()
