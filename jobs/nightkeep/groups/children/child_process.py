"""A function -> its result or error, computed in a child process.

Metadata that crashes native code, hangs it or takes all memory ends only the child. The caller then gets an error that
names the table, and the next call starts a new child. The child has the packages, environment and settings of this
process, but not its sockets, threads or JVM. It begins at `served_calls.serve`: it never runs the caller's own program,
as `multiprocessing` does where that has no guard.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import LifoQueue
from types import TracebackType
from typing import Final, TypeVar

from nightkeep.errors import Interrupted, ReaderEnded, UsageError, brief
from nightkeep.groups.children.served_calls import ServedAnswer
from nightkeep.interpreter import PYTHON, interpreter, is_named
from nightkeep.limits import READING
from nightkeep.model.version import __version__
from nightkeep.redaction import remember
from nightkeep.silence import learn_silence, silent

T = TypeVar("T")


class ChildProcess:
    """At most one child at a time. A call starts it if there is none, or if an earlier call ended it."""

    def __init__(self) -> None:
        self._python = interpreter()
        self._child: _Child | None = None
        self._interrupted = False

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def call(self, subject: str, work: Callable[[], T]) -> T:
        """Run `work` in the child and return its result; both must pickle. `subject` is the table that is read.

        Raises what `work` raises, RefusedTable if memory ran out, and ReaderEnded if the child ended, or was ended
        after READING, and KeyboardInterrupt if `interrupt` ended it.
        """
        if self._child is not None and self._child.process.poll() is not None:
            # The child ended between two calls, so no table's metadata is the cause.
            self._end()
        child = self._child = self._child or _started(self._python)
        answered = False
        try:
            self._go_on()
            child.pipe.send_bytes(pickle.dumps((subject, work, silent())))
            if not child.pipe.poll(READING.value):
                expected = f"its metadata to be read within {READING.value} seconds ({READING.variable})"
                raise ReaderEnded(subject, expected, "no end of it; the process that read it was ended")
            answer: ServedAnswer[T] = pickle.loads(child.pipe.recv_bytes())
            answered = True
        except (EOFError, OSError) as failure:
            self._go_on()
            expected = "its metadata to be read"
            raise ReaderEnded(subject, expected, f"that the process which read it {_how(child.process)}") from failure
        finally:
            # Also after a time-out or an interrupt: the next call would take a late answer for its own.
            if not answered:
                self._end()
        remember(answer.secrets)
        learn_silence(answer.silent, logs=True)
        if answer.failure is not None:
            raise answer.failure from _Elsewhere(answer.trace)
        return answer.value

    def interrupt(self) -> None:
        """End the child, from any thread, for good."""
        self._interrupted = True
        child = self._child
        if child is not None:
            child.process.kill()

    def _go_on(self) -> None:
        if self._interrupted:
            # No table's metadata is the cause, and no document may blame one.
            raise KeyboardInterrupt

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


class ChildProcesses:
    """At most `count` children, for the threads of one group. Each starts with its first call. A call waits while all
    are in use.

    The process that was used last is taken first, so that a second starts only if one is not enough.
    """

    def __init__(self, count: int) -> None:
        self._stack = ExitStack()
        self._idle = LifoQueue[ChildProcess]()
        self._children = [self._stack.enter_context(ChildProcess()) for _ in range(count)]
        for child in self._children:
            self._idle.put(child)

    def __enter__(self) -> ChildProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Interrupted):
            # Threads may wait for an answer still, so their pipes stay open.
            self.end()
        else:
            self._stack.close()

    def end(self) -> None:
        """End the children for good. Each call, also one that waits, raises KeyboardInterrupt then."""
        for child in self._children:
            child.interrupt()

    def call(self, subject: str, work: Callable[[], T]) -> T:
        """As `ChildProcess.call`, for any thread."""
        child = self._idle.get()
        try:
            return child.call(subject, work)
        finally:
            self._idle.put(child)


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    pipe: Connection

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()


class _Elsewhere(Exception):
    """The traceback in the child, as the cause of the exception that is raised here."""


def _started(python: str) -> _Child:
    """A child that has answered once. Raises UsageError if that Python has not this package."""
    ours, theirs = Pipe()
    # The packages of this process, as a script or spark-submit may have put some on its path.
    path = "[]" if is_named() else json.dumps([os.path.abspath(os.fspath(entry)) for entry in sys.path])
    # Without -P, a module of the working directory could take the place of json.
    command = [python, "-P", "-c", _ENTRY, NAME, path, str(theirs.fileno()), str(os.getpid())]
    with theirs:
        try:
            # In a group of its own: Ctrl-C is for the parent, which then ends the child.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], process_group=0)
        except OSError as failure:
            ours.close()
            raise UsageError(f"{PYTHON}: expected a Python at {brief(python)}, found none: {failure}") from failure
    child, found = _Child(process, ours), f"no answer within {READING.value} seconds"
    try:
        if ours.poll(READING.value):
            found = f"version {ours.recv_bytes(_VERSION_BYTES).decode(errors='replace')}"
    except (EOFError, OSError):
        found = f"that it {_how(process)}"
    except BaseException:
        child.end()
        raise
    if found != f"version {__version__}":
        child.end()
        raise UsageError(f"{brief(python)}: expected Nightkeep {__version__} to start ({PYTHON}), found {found}")
    return child


NAME: Final = "nightkeep-reader"
"""An argument of every child, which names it in a list of processes."""
_ENTRY: Final = (
    "import json, sys; _, path, descriptor, parent = sys.argv[1:]; sys.path[:] = json.loads(path) or sys.path; "
    "from nightkeep.groups.children.served_calls import serve; serve(int(descriptor), int(parent))"
)
_VERSION_BYTES: Final = 1000
_END_SECONDS: Final = 10
"""A process that has closed its pipe has ended, or is about to."""


def _how(process: subprocess.Popen[bytes]) -> str:
    """How a process ended that has closed its end of the pipe."""
    try:
        status = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
