"""Up to which version of a table it is known who committed each: the mark follows once a document names them.

<reports>/~versions/<table>.json

A run names the versions after the mark. What a killed run has read is so named by the next one. Without a mark that can
be read, a run names none and makes one.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nightkeep.errors import CorruptMetadata
from nightkeep.places import report_store
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import Extra
from nightkeep.records.file_names import VERSIONS, slug
from nightkeep.records.json_files import read_json


@dataclass(frozen=True, slots=True)
class VersionMark:
    """A table, and the newest of its versions that a document accounts for."""

    table: str
    version: int
    extra: Extra = field(default_factory=dict)


def known_version(reports: str | Path, table: str) -> int | None:
    """The version of the mark. None without one that can be read: then the next run makes one."""
    store, name = report_store(reports), _name(table)
    with suppress(OSError, CorruptMetadata):
        return decode(VersionMark, read_json(store, name), store.address(name)).version
    return None


def keep_version(reports: str | Path, table: str, version: int) -> None:
    """Replace the mark. One that cannot be written is left: the next run names the same versions again."""
    with suppress(OSError):
        text = json.dumps(encode(VersionMark(table, version))) + "\n"
        report_store(reports).write(_name(table), text.encode("ascii"))


def _name(table: str) -> str:
    return f"{VERSIONS}/{slug(table)}.json"
