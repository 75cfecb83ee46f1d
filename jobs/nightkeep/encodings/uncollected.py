"""Very many objects without cycles -> made while Python's collector of cycles is off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No cycles are collected within. Values of metadata form none, and each collection looks at all of them again:
    40,000 entries of Iceberg manifests take 1.5 CPU s in place of 2.2.

    Where several threads are within, collections begin again once the first of them to enter leaves.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
