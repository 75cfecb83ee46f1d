"""A table's commits -> how far its writers' clocks are from UTC, by which the ages of files are counted.

A file has the wall time at which it was made, in the zone of its writer, and not the zone (C/io/DataFileMeta.java). A
snapshot has its time without a zone, and its commit comes soon after its files were made. So the difference of both in
the newest commit that added files to level 0 is the zone. It counts for the older files as well: a writer that moved
to another zone since, or a second one elsewhere, makes their ages wrong by the difference of the zones.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.data.write import wall_clock_ms
from nightkeep.formats.paimon.metadata.entries import ADD, decoding, read_entries
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import newest_first
from nightkeep.storage import Storage

_QUARTER_MS: Final = 15 * 60 * 1000
"""Zones are whole quarters of an hour from UTC."""
_COMMITS: Final = 20
"""How many newest snapshots are read for one that added files to level 0."""


def clock_shift(*snapshots: PaimonSnapshot) -> int | None:
    """Milliseconds by which the writer's wall time is ahead of UTC, by the first snapshot whose own commit states
    it."""
    found = (_shift(each.delta_entries, int(str(each.raw["timeMillis"]))) for each in snapshots)
    return next((shift for shift in found if shift is not None), None)


def find_clock_shift(storage: Storage, snapshot: PaimonSnapshot) -> int | None:
    """As `clock_shift`, by the newest commit of the table that states it. Reads nothing if that is the snapshot's own,
    and of other commits than appends only their JSON."""
    own = clock_shift(snapshot)
    if own is not None or not any(file.level == 0 for unit in snapshot.units for file in unit.files):
        return own
    for raw in islice(newest_first(storage), _COMMITS):
        if raw["commitKind"] == "APPEND":
            try:
                entries = tuple(read_entries(storage, str(raw["deltaManifestList"])))
            except MissingFile:
                # It expired meanwhile, as have all older ones.
                return None
            with decoding(f"snapshot {raw['id']}", "entries of data files"):
                shift = _shift(entries, int(str(raw["timeMillis"])))
            if shift is not None:
                return shift
    return None


def writer_time(now_ms: int, shift_ms: int | None) -> int:
    """The time on the writer's clock; on this machine's, where no commit states the writer's."""
    return wall_clock_ms(now_ms) if shift_ms is None else now_ms + shift_ms


def _shift(entries: Iterable[Record], committed_ms: int) -> int | None:
    """The least whole quarter with which no file of the commit was made after it."""
    files = [entry["_FILE"] for entry in entries if entry["_KIND"] == ADD]
    made = [file["_CREATION_TIME"] for file in files if file["_LEVEL"] == 0 and file.get("_CREATION_TIME") is not None]
    return -((committed_ms - max(made)) // _QUARTER_MS) * _QUARTER_MS if made else None
