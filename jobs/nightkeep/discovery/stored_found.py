"""Found <-> a file of the run in the reports folder, so that the jobs of a night list nothing again."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nightkeep.discovery.found import Found
from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.reports import found_path, read_json, replace_file

_KEPT_SECONDS: Final = 30 * 24 * 60 * 60
"""Runs are tried again for hours, not for weeks."""


def keep_found(reports: str, prefix: str, found: Found) -> Path:
    """Write what a run found, without what is not ours, and remove what runs of long ago did. Returns the file.

    Raises EvidenceError."""
    path = found_path(reports, prefix)
    try:
        replace_file(path, json.dumps(replace(found, others=()).to_json()) + "\n")
    except OSError as failure:
        raise EvidenceError(str(path), "a file that can be written", failure.strerror or str(failure)) from failure
    for old in path.parent.glob("*.json"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
                old.unlink()
    return path


def kept_found(path: str | Path) -> Found:
    """What a run found. Raises FileNotFoundError, and CorruptMetadata for anything else than such a file."""
    value: Any = read_json(Path(path))
    try:
        return Found.from_json(value)
    except (KeyError, TypeError) as failure:
        raise CorruptMetadata(str(path), "the tables that a run found", str(failure)) from failure
