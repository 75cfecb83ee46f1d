"""SIGINT or SIGTERM -> one sentence on stderr, and the exit status 130 or 143, within seconds.

The first signal raises Interrupted in the main thread. Frames that know what was published or removed add it as a note
while the exception passes. A thread of its own ends the process at the second signal, and GRACE_SECONDS after the
first: the main thread may wait in native code, where no exception reaches it. The end needs no clean-up: a process may
be killed at any moment, and the next run continues from the documents and the tables.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

from nightkeep.errors import DEBUG, Interrupted, brief
from nightkeep.redaction import redact

GRACE_SECONDS: Final = 3.0
"""Airflow kills a task three seconds after SIGTERM."""
_UNKNOWN: Final = "each version that it published is whole, and the same run, started again, looks for it"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_DONE: Final = b"\0"
_MOMENT_SECONDS: Final = 0.05
_MOST: Final = 1_000


@contextmanager
def ended_by_signals(program: str) -> Iterator[None]:
    """In the `with` block, both signals end this process. A signal that the caller ignores stays ignored.

    Signals reach the main thread only: in any other one, nothing changes, nor in a block inside another one.
    """
    handled = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    inner = any(isinstance(getattr(signal.getsignal(each), "__self__", None), _Watch) for each in _SIGNALS)
    if threading.current_thread() is not threading.main_thread() or inner or not handled:
        yield
        return
    watch = _Watch(program)
    before = {each: signal.signal(each, watch.on_signal) for each in handled}
    wakeup = signal.set_wakeup_fd(watch.writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        # The exception may have been replaced by another one, or swallowed by a library.
        if watch.stop is not None:
            watch.end()
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        watch.close()


class _Watch:
    """The signals of this process, and the thread that waits for them beside the main thread."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._reader, self.writer = socket.socketpair()
        self.writer.settimeout(0)
        self.stop: Interrupted | None = None
        self._last, self._twice = signal.SIGINT, False
        self._ending = threading.Lock()
        self._stderr = os.dup(2)
        self._thread = threading.Thread(target=self._wait, name="nightkeep-signals", daemon=True)
        self._thread.start()

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The handler in the main thread. It raises once, as another exception would end the clean-up of the first."""
        if self.stop is None:
            _silence()
            self.stop = Interrupted(number)
            raise self.stop

    def _wait(self) -> None:
        """End the process at the second signal, or if the first has not ended it in time."""
        if self._next():
            _silence()
            self._wake()
            self._reader.settimeout(GRACE_SECONDS)
            with suppress(TimeoutError):
                self._twice = self._next()
            self.end()

    def _wake(self) -> None:
        """Interrupt the main thread, if it waits for a lock still. Polars puts a handler of its own for SIGINT beneath
        the one of Python, after which the kernel starts the wait again."""
        main, number = threading.main_thread().ident, self._last
        time.sleep(_MOMENT_SECONDS)
        if self.stop is None and main is not None:
            signal.pthread_kill(main, signal.SIGTERM)
            # This one is our own.
            self._next()
            self._last = number

    def _next(self) -> bool:
        """Wait for one of the signals. False if the work ended before."""
        while (byte := self._reader.recv(1)) not in (b"", _DONE):
            if byte[0] in _SIGNALS:
                self._last = signal.Signals(byte[0])
                return True
        return False

    def close(self) -> None:
        self.writer.send(_DONE)
        self._thread.join()
        for each in (self._reader, self.writer):
            each.close()
        os.close(self._stderr)

    def end(self) -> NoReturn:
        """Write the sentence, end the children, and end this process."""
        with self._ending:
            number = self._last if self.stop is None else self.stop.number
            with suppress(OSError):
                os.write(self._stderr, self._text(number).encode())
            kills = self._twice or (self.stop is not None and self.stop.kills)
            _end_children(signal.SIGKILL if kills else signal.SIGTERM)
            os._exit(128 + number)

    def _text(self, number: int) -> str:
        stop = self.stop or Interrupted(number)
        notes = getattr(stop, "__notes__", None) or [_UNKNOWN]
        sentence = f"{self._program}: {stop}: {'; '.join(notes)}{self._again(stop.run_id)}"
        trace = "".join(traceback.format_exception(stop)) if os.environ.get(DEBUG) else ""
        return redact(f"{trace}{_terminal(self._stderr)}{brief(sentence, _MOST)}\n")

    def _again(self, run_id: str | None) -> str:
        """The command that continues: the same one, with the run id that it had."""
        if self._program.endswith(".py"):
            return "; the same job, started again, goes on"
        given = sys.argv[1:]
        named = [] if run_id is None or any(each.startswith("--run-id") for each in given) else ["--run-id", run_id]
        return f"; to go on: {shlex.join([self._program, *given, *named])}"


def _silence() -> None:
    """Discard what libraries print about the interrupt, such as tracebacks of calls that were cut short."""
    if not os.environ.get(DEBUG):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _terminal(descriptor: int) -> str:
    """What removes a progress bar from a terminal, and shows its cursor again."""
    return "\r\x1b[2K\x1b[?25h" if os.isatty(descriptor) else ""


def _end_children(number: signal.Signals) -> None:
    """Send a signal to the children. Spark's JVM removes its folders after SIGTERM. Linux only."""
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as listed:
                for child in listed.read().split():
                    os.kill(int(child), number)
