"""Snapshot -> new metadata file -> the catalog names it, if it still names the one before.

For catalogs that hold no more of a table than the name of its metadata file. We write the metadata ourselves: pyiceberg
drops fields that it does not know, and cannot write format version 3.
"""

from __future__ import annotations

import gzip
import json
import re
import uuid
from collections.abc import Iterator
from typing import Final, Protocol

from nightkeep.errors import NotCreated
from nightkeep.formats.iceberg.catalog.claims import Claim
from nightkeep.formats.iceberg.metadata.kept_statistics import kept_statistics
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.table_metadata import MAIN, Raw, objects, properties, text, with_snapshot
from nightkeep.storage import Storage

_VERSION: Final = re.compile(r"v?(\d+)[-.]")


class Pointers(Protocol):
    """The names of metadata files in one catalog."""

    def metadata_location(self, identifier: tuple[str, ...]) -> str | None:
        """The location of the table's current metadata; None if there is no such table. Raises what its client does."""

    def swap(self, identifier: tuple[str, ...], *, old: str, new: str, after: Raw) -> bool:
        """Replace `old` by `new`, whose content is `after`. Returns False if `old` is not the table's any more.

        Of several callers with the same `old` one gets True. Raises OSError if the outcome is unknown.
        """

    def claims(self) -> Iterator[Claim]:
        """The metadata files of all tables. Raises what its client does."""


def commit(
    pointers: Pointers,
    identifier: tuple[str, ...],
    storage: Storage,
    *,
    snapshot: Raw,
    before: tuple[Raw, str],
    branch: str = MAIN,
) -> bool:
    """Add `snapshot` to a branch in the metadata and location `before`, with the statistics that it keeps.

    Returns False if they are no longer current. Raises OSError if the outcome is unknown; the new metadata file is then
    kept.
    """
    subject = ".".join(identifier)
    raw, location = before
    after = with_snapshot(raw, snapshot, location=location, subject=subject, branch=branch)
    if after is None:
        return False
    statistics = kept_statistics(raw, snapshot, subject=subject)
    if statistics:
        after = {**after, "statistics": [*objects(raw, "statistics", subject=subject), *statistics]}
    return replace(pointers, identifier, storage, after=after, location=location)


def replace(pointers: Pointers, identifier: tuple[str, ...], storage: Storage, *, after: Raw, location: str) -> bool:
    """Replace the table's metadata at `location` by `after`. Returns False if `location` is no longer current.

    Raises OSError if the outcome is unknown; the new metadata file is then kept.
    """
    subject = ".".join(identifier)
    ours = next_location(after, location, subject=subject)
    data = json.dumps(after).encode()
    try:
        storage.put(storage_name(ours), gzip.compress(data, mtime=0) if ours.endswith(_GZIP) else data)
    except OSError as failure:
        # The catalog does not know this file yet.
        storage.delete_all([storage_name(ours)])
        raise NotCreated(ours, "table metadata that can be written", str(failure)) from failure
    if pointers.swap(identifier, old=location, new=ours, after=after):
        return True
    # The catalog refused the name, and nobody else knows it.
    storage.delete(storage_name(ours))
    return False


def next_location(raw: Raw, location: str, *, subject: str) -> str:
    """A new, unique location for the metadata that follows the one at `location`, named as Iceberg Java does."""
    stated = properties(raw, subject=subject)
    folder = stated.get("write.metadata.path") or f"{text(raw, 'location', subject=subject).rstrip('/')}/metadata"
    past = _VERSION.match(location.rpartition("/")[2])
    number = int(past[1]) + 1 if past else 0
    compressed = stated.get("write.metadata.compression-codec", "none").lower() == "gzip"
    return f"{folder.rstrip('/')}/{number:05d}-{uuid.uuid4()}{_GZIP if compressed else _PLAIN}"


_PLAIN: Final = ".metadata.json"
_GZIP: Final = ".gz.metadata.json"
