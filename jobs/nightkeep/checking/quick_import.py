"""Great Expectations, imported without packages of others that the check needs not or seldom.

The import takes 2.9 CPU seconds with them and 1.7 without. What is only put off is there as soon as it is used.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Final

_UNUSED: Final = frozenset({"boto3", "botocore", "pyspark.sql.connect"})
"""For data sources that the check has none of. Great Expectations goes on without what is not installed."""
_SELDOM_USED: Final = frozenset({"altair", "scipy.stats"})
"""For a few types of expectations, and for plots."""


@contextmanager
def quick_import() -> Iterator[None]:
    """Imports of this thread in the `with` block find no package that is not used, and put off those seldom used.

    Other threads and later imports find all of them. A package that is put off is executed at its first use, by
    `GX_AT_WORK` in one thread at a time.
    """
    finder = _Finder(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if threading.get_ident() != self._thread:
            return None
        if fullname in _UNUSED:
            raise ModuleNotFoundError(f"{fullname} is not needed", name=fullname)
        found = PathFinder.find_spec(fullname, path, target) if fullname in _SELDOM_USED else None
        if found is not None and found.loader is not None:
            found.loader = LazyLoader(found.loader)
        return found
