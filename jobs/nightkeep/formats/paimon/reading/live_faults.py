"""The newest snapshot -> what its live files contradict: of each other, and of what it states of all. Metadata only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.binary_row import SortKey, decode_row, sort_key
from nightkeep.formats.paimon.metadata.entries import decoding, merge_entries, read_list, read_manifest
from nightkeep.formats.paimon.metadata.row_totals import counts_removed_rows
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class LevelOverlap:
    """Two files of one level above 0 with keys in common. Readers and compactions take such a level for one run."""

    level: int
    names: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.names[1]} to level {self.level}, where {self.names[0]} has keys of its range"


@dataclass(frozen=True, slots=True)
class LiveFaults:
    """Faults of the version itself, and files of one level that overlap, whichever commit added them."""

    of_version: tuple[str, ...]
    overlaps: tuple[LevelOverlap, ...]


def live_faults(storage: Storage, raw: Mapping[str, object], schema: PaimonSchema) -> LiveFaults:
    """Raises MissingFile, RefusedTable, and CorruptMetadata for a file that is added or removed twice."""
    subject = f"snapshot/snapshot-{raw['id']}"
    lines = [
        line
        for field in ("baseManifestList", "deltaManifestList")
        for line in read_list(storage, str(raw[field])).records
    ]
    read = [read_manifest(storage, line) for line in lines]
    with decoding(subject, "entries of data files, and their keys"):
        live = merge_entries(entry for manifest in read for entry in manifest.records)
        found = sum(entry["_FILE"]["_ROW_COUNT"] for entry in live)
        stated, faults = int(str(raw["totalRecordCount"])), tuple[str, ...]()
        schemas = (manifest.schema for manifest in read)
        if found != stated and not counts_removed_rows(schemas, stated=stated, found=found):
            faults = (f"it states {stated} rows in all, and its files have {found}",)
        return LiveFaults(faults, tuple(overlaps(live, schema)) if schema.primary_keys else ())


def overlaps(entries: Iterable[Record], schema: PaimonSchema) -> Iterator[LevelOverlap]:
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    levels: defaultdict[tuple[bytes, int, int], list[Record]] = defaultdict(list)
    for entry in entries:
        if entry["_FILE"]["_LEVEL"] > 0:
            levels[entry["_PARTITION"], entry["_BUCKET"], entry["_FILE"]["_LEVEL"]].append(entry["_FILE"])
    for (_, _, level), files in levels.items():
        for left, right in pairwise(sorted(_key_range(file, types) for file in files)):
            if right[0] <= left[1]:
                yield LevelOverlap(level, (left[2], right[2]))


def _key_range(file: Record, types: Sequence[PaimonType]) -> tuple[SortKey, SortKey, str]:
    low, high = (sort_key(decode_row(file[end], types), types) for end in ("_MIN_KEY", "_MAX_KEY"))
    return low, high, str(file["_FILE_NAME"])
