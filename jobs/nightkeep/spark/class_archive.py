"""Java and Spark's jars -> the options of a JVM that maps their classes into memory instead of loading them.

The archive ("Class Data Sharing" of Java) is made by request only, by `write_class_archive`. `python -m
nightkeep.spark.class_archive` prints the options, for the JVM of spark-submit.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FOLDER: Final = "NIGHTKEEP_CLASS_ARCHIVE"
"""The variable that names the folder of the archive; `off` for none."""
_OFF: Final = "off"
_PLAIN: Final = re.compile(r"[\w./+@%=-]+", re.ASCII)
"""Paths that neither Spark nor the JVM takes apart: the JVM parts two archives by a colon."""


def archive_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of the archive, by default in the environment of this Python; None if there is to be none."""
    given = environ.get(FOLDER) or str(Path(sys.prefix, "share", "nightkeep"))
    return None if given == _OFF or not _PLAIN.fullmatch(given) else Path(given)


def reading_options(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The options of a JVM that reads the archive; none if there is no whole one for this Java and these jars.

    The JVM itself compares its build and its class path with the archive's, and the archive with its checksums. If one
    differs, it loads classes from jars, and reports nothing.
    """
    folder = archive_folder(environ)
    name = None if folder is None else archive_name(environ)
    if folder is None or name is None:
        return ()
    # The JVM would crash on one that was cut. Its size is in its name.
    whole = (file for file in folder.glob(f"{name}-*.jsa") if file.name == sized(name, file.stat().st_size))
    file = next(whole, None)
    if file is None:
        return ()
    return (f"-XX:SharedArchiveFile={file}", "-XX:+VerifySharedSpaces", *QUIET)


QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""The JVM's warnings go to standard output, which belongs to the answer of a command."""


def archive_name(environ: Mapping[str, str]) -> str | None:
    """A name for the archive of this Java and these jars. None if one of them is not there."""
    java, jars = _java(environ), _jars(environ)
    if java is None or not jars.is_dir():
        return None
    held = [(jar.name, jar.stat()) for jar in sorted(jars.iterdir())]
    facts = [os.path.realpath(java), str(jars), *(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in held)]
    digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()
    return f"spark-classes-{digest[:20]}"


def sized(name: str, size: int) -> str:
    """The file name of a whole archive."""
    return f"{name}-{size}.jsa"


def _java(environ: Mapping[str, str]) -> str | None:
    """The Java that Spark's scripts start."""
    home = environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java", path=environ.get("PATH"))


def _jars(environ: Mapping[str, str]) -> Path:
    home = environ.get("SPARK_HOME")
    if home:
        return Path(home, "jars")
    spec = find_spec("pyspark")
    return Path(spec.origin if spec is not None and spec.origin is not None else "none").parent / "jars"


if __name__ == "__main__":
    print(*reading_options(os.environ))
