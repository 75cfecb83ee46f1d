"""Catalogs for pyiceberg's `py-catalog-impl`, each of which does something to the process that opens a table of it."""

import os
import signal
import sys
import time
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog


def crash(name: str, **settings: Any) -> None:
    """As native code that follows a bad pointer."""
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(name: str, **settings: Any) -> None:
    os._exit(3)


def sleep(name: str, **settings: Any) -> None:
    """For longer than anybody waits, and deaf to everything but SIGKILL."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def swell(name: str, **settings: Any) -> None:
    """Asks for memory, which is not touched: more than the limit of the tests, less than a machine has."""
    raise OSError(f"there were {len(bytearray(6 << 30))} bytes")


def spare_children(name: str, **settings: Any) -> SqlCatalog:
    """Ends a driver, and reads for its child."""
    if "nightkeep-reader" not in sys.orig_argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return SqlCatalog(name, **settings)


def end_spark(name: str, **settings: Any) -> SqlCatalog:
    """Ends the JVM that started a driver, as the kernel does where memory runs out; reads for its child."""
    if "nightkeep-reader" not in sys.orig_argv:
        os.kill(os.getppid(), signal.SIGKILL)
    return SqlCatalog(name, **settings)


class Odd(Exception):
    """Pickled, it cannot be made anew."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


def fail(name: str, **settings: Any) -> None:
    raise Odd(why="it is odd")
