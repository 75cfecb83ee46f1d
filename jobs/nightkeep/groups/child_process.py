"""A function -> what it returns or raises, in a child process that may die of it.

Metadata that crashes native code, hangs it or takes all memory ends the child alone: the caller gets an error that
names the table, and the next call has a new child. Code, environment and settings reach the child as they are here;
sockets, threads and a JVM of this process do not.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Final, TypeVar

from nightkeep.errors import ReaderEnded, failure_text
from nightkeep.limits import READING, confine_memory, out_of_memory
from nightkeep.redaction import learnt, redacted_output, remember

T = TypeVar("T")


class ChildProcess:
    """One child at a time: started by the first call, and again by the next one after a call that ended it."""

    def __init__(self) -> None:
        self._child: _Child | None = None

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def call(self, subject: str, work: Callable[[], T]) -> T:
        """What `work` returns: both must pickle. `subject` is the table that is read.

        Raises what `work` raises; RefusedTable where memory ran out; ReaderEnded where the child ended, or had to be
        ended after READING.
        """
        if self._child is not None and not self._child.process.is_alive():
            # It ended between two calls: nobody's metadata is to blame.
            self._end()
        child = self._child = self._child or _start()
        answered = False
        try:
            child.pipe.send((subject, work))
            if not child.pipe.poll(READING.value):
                expected = f"its metadata to be read within {READING.value} seconds ({READING.variable})"
                raise ReaderEnded(subject, expected, "no end of it; the process that read it was ended")
            answer: _Answer = child.pipe.recv()
            answered = True
        except (EOFError, OSError) as failure:
            expected = "its metadata to be read"
            raise ReaderEnded(subject, expected, f"that the process which read it {_how(child.process)}") from failure
        finally:
            # After a time-out or an interrupt, too: a late answer would be taken for that of the next call.
            if not answered:
                self._end()
        remember(answer.secrets)
        if answer.failure is not None:
            raise answer.failure from _Elsewhere(answer.trace)
        value: T = answer.value
        return value

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.process.kill()
            child.process.join()
            child.process.close()
            child.pipe.close()


@dataclass(frozen=True, slots=True)
class _Child:
    process: BaseProcess
    pipe: Connection


@dataclass(frozen=True, slots=True)
class _Answer:
    """`secrets` are those that the child learnt, of a catalog's settings for instance."""

    value: Any
    failure: Exception | None
    trace: str
    secrets: frozenset[str]


class _Elsewhere(Exception):
    """The traceback of another process, as the cause of what it raised."""


def _start() -> _Child:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, os.getpid()), name="nightkeep-reader", daemon=True)
    process.start()
    theirs.close()
    return _Child(process, ours)


def _how(process: BaseProcess) -> str:
    """How a process ended whose end of the pipe is closed."""
    process.join()
    status = process.exitcode or 0
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _serve(pipe: Connection, parent: int) -> None:
    """The child's life: call by call, until the parent closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _end_with(parent)
    _be_the_first_to_go()
    with redacted_output(), suppress(EOFError):
        while True:
            subject, work = pipe.recv()
            pipe.send_bytes(_answered(subject, work))


def _answered(subject: str, work: Callable[[], Any]) -> bytes:
    """A pickled answer: what cannot be pickled is a failure as well."""
    try:
        confine_memory()
        return pickle.dumps(_Answer(work(), None, "", learnt()))
    except MemoryError:
        failure: Exception = out_of_memory(subject)
    except Exception as raised:  # noqa: BLE001 -- the caller's to judge
        failure = raised
    trace = "".join(traceback.format_exception(failure))
    return pickle.dumps(_Answer(None, _picklable(failure), trace, learnt()))


def _picklable(failure: Exception) -> Exception:
    """The failure itself, or its words where its class cannot be made anew from what it keeps."""
    try:
        pickle.loads(pickle.dumps(failure))
    except Exception:  # noqa: BLE001 -- libraries' own classes fail in any way
        return RuntimeError(failure_text(failure))
    return failure


def _end_with(parent: int) -> None:
    """Have the kernel end this process with its parent, whatever ends that; on Linux."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _be_the_first_to_go() -> None:
    """Where memory runs out, the kernel is to end this process, and not the driver or Spark."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


_PR_SET_PDEATHSIG: Final = 1
