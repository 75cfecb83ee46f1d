"""Spark's JVM did not start -> what is wrong with the Java that it starts with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from nightkeep.errors import Unreachable

LEAST: Final = 17
"""Spark 4 is compiled for it."""


@contextmanager
def starting_java() -> Iterator[None]:
    """Raise Unreachable, which names the Java that was found, if the JVM does not start for want of another."""
    try:
        yield
    except (RuntimeError, OSError) as failure:
        found = _fault()
        if found is None:
            raise
        advice = f"install Java {LEAST}, and name its folder in JAVA_HOME"
        raise Unreachable("Spark", f"Java {LEAST} or later", f"{found}; {advice}") from failure


def _fault() -> str | None:
    """What is wrong with the Java that Spark's scripts look for, or None."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return "none on the path"
    try:
        done = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return f"none that runs at {java}"
    version = _VERSION.search(done.stderr + done.stdout)
    if done.returncode != 0 or version is None:
        return f"none that runs at {java}"
    return f"Java {version[1]} at {java}" if int(version[1]) < LEAST else None


_SECONDS: Final = 30.0
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
