"""A function -> its result or error, computed in a child process.

Metadata that crashes native code, hangs it or takes all memory ends only the child. The caller then gets an error that
names the table, and the next call starts a new child. The child has the code, environment and settings of this process,
but not its sockets, threads or JVM.
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
from typing import Final, Generic, TypeVar

from nightkeep.errors import ReaderEnded, failure_text
from nightkeep.limits import READING, confine_memory, out_of_memory
from nightkeep.redaction import learnt, redacted_output, remember

T = TypeVar("T")


class ChildProcess:
    """At most one child at a time. A call starts it if there is none, or if an earlier call ended it."""

    def __init__(self) -> None:
        self._child: _Child | None = None

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def call(self, subject: str, work: Callable[[], T]) -> T:
        """Run `work` in the child and return its result; both must pickle. `subject` is the table that is read.

        Raises what `work` raises, RefusedTable if memory ran out, and ReaderEnded if the child ended, or was ended
        after READING.
        """
        if self._child is not None and not self._child.process.is_alive():
            # The child ended between two calls, so no table's metadata is the cause.
            self._end()
        child = self._child = self._child or _start()
        answered = False
        try:
            child.pipe.send((subject, work))
            if not child.pipe.poll(READING.value):
                expected = f"its metadata to be read within {READING.value} seconds ({READING.variable})"
                raise ReaderEnded(subject, expected, "no end of it; the process that read it was ended")
            answer: _Answer[T] = child.pipe.recv()
            answered = True
        except (EOFError, OSError) as failure:
            expected = "its metadata to be read"
            raise ReaderEnded(subject, expected, f"that the process which read it {_how(child.process)}") from failure
        finally:
            # Also after a time-out or an interrupt: the next call would take a late answer for its own.
            if not answered:
                self._end()
        remember(answer.secrets)
        if answer.failure is not None:
            raise answer.failure from _Elsewhere(answer.trace)
        return answer.value

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
class _Answer(Generic[T]):
    """The result or failure of one call. `secrets` are those that the child has read, such as a catalog's settings."""

    value: T
    failure: Exception | None
    trace: str
    secrets: frozenset[str]


class _Elsewhere(Exception):
    """The traceback in the child, as the cause of the exception that is raised here."""


def _start() -> _Child:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, os.getpid()), name="nightkeep-reader", daemon=True)
    process.start()
    theirs.close()
    return _Child(process, ours)


def _how(process: BaseProcess) -> str:
    """How a process ended that has closed its end of the pipe."""
    process.join()
    status = process.exitcode or 0
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _serve(pipe: Connection, parent: int) -> None:
    """The main loop of the child: answers calls until the parent closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _end_with(parent)
    _be_the_first_to_go()
    with redacted_output(), suppress(EOFError):
        while True:
            subject, work = pipe.recv()
            pipe.send_bytes(_answered(subject, work))


def _answered(subject: str, work: Callable[[], object]) -> bytes:
    """The pickled answer to a call. A result that cannot be pickled becomes a failure."""
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
    """The failure itself, or an error with its text if the failure does not survive pickling."""
    try:
        pickle.loads(pickle.dumps(failure))
    except Exception:  # noqa: BLE001 -- libraries' own classes fail in any way
        return RuntimeError(failure_text(failure))
    return failure


def _end_with(parent: int) -> None:
    """Make the kernel end this process when its parent ends, however that happens. Linux only."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _be_the_first_to_go() -> None:
    """Make the kernel end this process first if memory runs out, not the driver or Spark."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")


_PR_SET_PDEATHSIG: Final = 1
