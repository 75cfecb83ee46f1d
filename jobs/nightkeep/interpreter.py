"""The Python that this package starts processes with. It is never the program that calls this package.

A frozen program and a server that embeds Python name themselves as `sys.executable`: to start that would run the
caller again.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Final

from nightkeep.errors import UsageError, brief

PYTHON: Final = "NIGHTKEEP_PYTHON"
"""Environment variable: a Python that has this package, for programs that are none themselves."""


def interpreter() -> str:
    """The path of that Python. Raises UsageError for a program that is none, if the environment names none."""
    named = os.environ.get(PYTHON)
    if named:
        return named
    frozen = bool(getattr(sys, "frozen", False))
    if not frozen and _A_PYTHON.search(os.path.basename(sys.executable or "")):
        return sys.executable
    program = f"a frozen program ({brief(sys.executable)})" if frozen else f"a program at {brief(sys.executable)!r}"
    raise UsageError(f"{PYTHON}: expected the path of a Python that has Nightkeep, as {program} is none, found nothing")


def is_named() -> bool:
    """Whether the environment names that Python. The packages of this process are not its packages."""
    return bool(os.environ.get(PYTHON))


_A_PYTHON: Final = re.compile("python|pypy", re.IGNORECASE)
