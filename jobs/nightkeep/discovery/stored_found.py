"""Found <-> a file of the run among the reports, so that the jobs of a night list nothing again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from nightkeep.discovery.found import Found
from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.places import forget_old, is_address, located
from nightkeep.records import found_path
from nightkeep.records.json_files import read_json

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


def last_found(reports: str, prefix: str = "") -> Found:
    """What the newest run found whose own prefix begins with this one; nothing if none can be read.

    Only of a local folder: no answer of a bucket is waited for.
    """
    if is_address(reports):
        return Found()
    # An order of a night is kept beside what its run found.
    store, named = located(found_path(reports, prefix).removesuffix(".json"))
    # Without a prefix, of any run: the name of an empty one is that of no other.
    start = named if prefix else ""
    try:
        kept = [
            each for each in store.list("") if each.name.startswith(start) and not each.name.endswith("~night.json")
        ]
        newest = max(kept, key=lambda each: each.modified_ns, default=None)
        return Found() if newest is None else kept_found(store.address(newest.name))
    except (OSError, CorruptMetadata):
        return Found()


def kept_found(address: str) -> Found:
    """What a run found. Raises FileNotFoundError, and CorruptMetadata for anything else than such a file."""
    value: Any = read_json(*located(address))
    try:
        return Found.from_json(value)
    except (KeyError, TypeError) as failure:
        raise CorruptMetadata(address, "the tables that a run found", str(failure)) from failure
