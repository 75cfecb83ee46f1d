"""Installed packages -> the name and version of each that takes part in a run, for its document."""

from __future__ import annotations

import platform
from importlib.metadata import version as installed

from nightkeep import __version__

PACKAGES = ("pyspark", "pyarrow", "polars", "pyroaring", "fastavro", "pyiceberg")


def versions() -> dict[str, str]:
    """Versions by name."""
    return {
        "nightkeep": __version__,
        "python": platform.python_version(),
        **{name: installed(name) for name in PACKAGES},
    }
