"""Found <-> a file of the run among the reports, so that the jobs of a night list nothing again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from nightkeep.discovery.found import Found
from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.reports import found_path, located
from nightkeep.reports.json_files import read_json
from nightkeep.reports.report_places import forget_old

_KEPT_SECONDS: Final = 30 * 24 * 60 * 60
"""Runs are tried again for hours, not for weeks."""


def keep_found(reports: str, prefix: str, found: Found) -> str:
    """Write what a run found, without what is not ours, and remove what runs of long ago did. Returns its address.

    Raises EvidenceError."""
    path = found_path(reports, prefix)
    store, name = located(path)
    try:
        store.write(name, f"{json.dumps(replace(found, others=()).to_json())}\n".encode())
    except OSError as failure:
        raise EvidenceError(path, "a file that can be written", failure.strerror or str(failure)) from failure
    forget_old(store, "", seconds=_KEPT_SECONDS)
    return path


def kept_found(address: str) -> Found:
    """What a run found. Raises FileNotFoundError, and CorruptMetadata for anything else than such a file."""
    value: Any = read_json(*located(address))
    try:
        return Found.from_json(value)
    except (KeyError, TypeError) as failure:
        raise CorruptMetadata(address, "the tables that a run found", str(failure)) from failure
