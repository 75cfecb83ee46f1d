"""Snapshots, by their numbers -> who made each: its `commitUser` and `commitKind` (A/Snapshot.java)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import parse_snapshot
from nightkeep.formats.paimon.reading.past import claim_of
from nightkeep.model.run_names import COMMIT_USER
from nightkeep.protocol.version_writers import WrittenSince, WrittenVersion, numbered_versions
from nightkeep.storage import Storage, at_once


def written_since(storage: Storage, newest: PaimonSnapshot, *, since: int, most: int) -> WrittenSince:
    """As `protocol.version_writers.ReadsWriters`: one read for each version, of its snapshot alone."""

    def read(numbers: Iterable[int]) -> list[WrittenVersion | None]:
        return at_once(partial(_written, storage), numbers)

    return numbered_versions(read, newest=newest.version, since=since, most=most)


def _written(storage: Storage, number: int) -> WrittenVersion | None:
    name = f"snapshot/snapshot-{number}"
    try:
        raw = parse_snapshot(storage.read(name), subject=name)
    except MissingFile:
        return None
    author = str(raw["commitUser"])
    return WrittenVersion(
        version=number,
        kind=str(raw["commitKind"]),
        author=author,
        claim=claim_of(raw, entries=None),
        ours=author.startswith(COMMIT_USER),
        time_ms=int(str(raw["timeMillis"])),
    )
