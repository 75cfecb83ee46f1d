"""While a session starts: modules are imported in a thread, and the handler of SIGINT stays this process's own."""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from nightkeep.errors import Interrupted


@contextmanager
def importing(modules: Sequence[str]) -> Iterator[None]:
    """Import modules in a thread during the `with` block, which waits for another process, such as a JVM."""
    thread = threading.Thread(target=_import_all, args=(modules,), name="nightkeep-imports", daemon=True)
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


def _import_all(modules: Sequence[str]) -> None:
    # Whoever needs the module imports it again, and gets the error.
    with suppress(Exception):
        for module in modules:
            importlib.import_module(module)


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
