"""Installed packages -> the name and version of each that takes part in a run, for its document."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version as installed

from nightkeep.model.version import __version__

PACKAGES = ("pyspark", "pyarrow", "polars", "pyroaring", "fastavro", "pyiceberg")


def versions() -> dict[str, str]:
    """Versions by name."""
    return {"nightkeep": __version__, "python": platform.python_version(), **_installed()}


@cache
def _installed() -> dict[str, str]:
    # Each is parsed from a file, which takes as long as a run without work; none changes while the process runs.
    return {name: installed(name) for name in PACKAGES}
