"""The Java that Spark's scripts start, and what is wrong with it: before any start, and where the JVM did not start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import Unreachable

LEAST: Final = 17
"""Spark 4 is compiled for it."""
ADVICE: Final = f"install Java {LEAST}, and name its folder in JAVA_HOME"


@dataclass(frozen=True, slots=True)
class FoundJava:
    """The path of a Java, None where none is on the path, and its release, None where it does not run."""

    path: str | None
    release: int | None = None

    @property
    def is_fit(self) -> bool:
        return self.release is not None and self.release >= LEAST

    def __str__(self) -> str:
        if self.path is None:
            return "none on the path"
        return f"none that runs at {self.path}" if self.release is None else f"Java {self.release} at {self.path}"


@contextmanager
def starting_java() -> Iterator[None]:
    """Raise Unreachable, which names the Java that was found, if the JVM does not start for want of another."""
    try:
        yield
    except (RuntimeError, OSError) as failure:
        found = find_java(os.environ)
        if found.is_fit:
            raise
        raise Unreachable("Spark", f"Java {LEAST} or later", f"{found}; {ADVICE}") from failure


def find_java(environ: Mapping[str, str]) -> FoundJava:
    """The Java that Spark's scripts look for, that of JAVA_HOME or else the first on the path, and its release."""
    home = environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH"))
    if java is None:
        return FoundJava(None)
    try:
        done = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return FoundJava(java)
    version = _VERSION.search(done.stderr + done.stdout)
    return FoundJava(java, None if done.returncode != 0 or version is None else int(version[1]))


_SECONDS: Final = 30.0
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
