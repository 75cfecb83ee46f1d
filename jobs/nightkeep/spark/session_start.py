"""While a session starts: modules are imported in a thread, and the handler of SIGINT stays this process's own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from nightkeep.errors import Interrupted


@contextmanager
def beside_this(work: Callable[[], None]) -> Iterator[None]:
    """Call `work`, which imports modules, in a thread during the `with` block, which waits for a JVM.

    Its failure is not reported: whoever needs a module imports it again, and gets the error.
    """
    thread = threading.Thread(target=_quietly, args=(work,), name="nightkeep-imports", daemon=True)
    thread.start()
    waits = True
    try:
        yield
    except Interrupted:
        waits = False
        raise
    finally:
        # Two threads that import modules of a cycle may see each other's half.
        if waits:
            thread.join()


def _quietly(work: Callable[[], None]) -> None:
    with suppress(Exception):
        work()


@contextmanager
def own_interrupts() -> Iterator[None]:
    """Keep this process's handler of SIGINT. The one of pyspark calls the JVM in the middle of another call, which
    fails with tracebacks, and stays after the session has ended."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except Interrupted as stop:
        stop.kills = True
        raise
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGINT, handler)
