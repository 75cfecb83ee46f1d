"""Manifests and index manifests -> contradictions with their lists, with each other, and with the version before.

A file that was copied over another is valid, and may have the counts and the rows that its list and its snapshot state.
Each file has a random sync marker or its own name in its header, so no two files of a table have the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.metadata.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.metadata.entries import ADD, decoding, merge_entries, read_entries, read_index, read_list
from nightkeep.formats.paimon.metadata.locations import BranchFolders
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.storage import Storage, at_once

_FLOATS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_VECTORS = "DELETION_VECTORS"


def require_line(meta: Record, records: Sequence[Record], where: BranchFolders) -> None:
    """Raises CorruptMetadata if a manifest has entries that readers would skip it for, by its line in the list.

    Its counts were compared when it was read. The schema of the line is the committing writer's, and no bound.
    """
    name = f"manifest/{meta['_FILE_NAME']}"
    for what, numbers in (
        ("BUCKET", [record["_BUCKET"] for record in records]),
        ("LEVEL", [record["_FILE"]["_LEVEL"] for record in records]),
    ):
        low, high = meta.get(f"_MIN_{what}"), meta.get(f"_MAX_{what}")
        if numbers and ((low is not None and min(numbers) < low) or (high is not None and max(numbers) > high)):
            expected = f"{what.lower()}s {low} to {high}, as its list states"
            raise CorruptMetadata(name, expected, f"{min(numbers)} to {max(numbers)}")
    _require_partitions(meta["_PARTITION_STATS"], {record["_PARTITION"] for record in records}, where, name)


def _require_partitions(stats: Record, partitions: Iterable[bytes], where: BranchFolders, name: str) -> None:
    types = [field.type for field in where.partition]
    lows, highs = (decode_row(stats[side], types) for side in ("_MIN_VALUES", "_MAX_VALUES"))
    rows = [decode_row(partition, types) for partition in partitions]
    for place, field in enumerate(where.partition):
        held = [sort_key((row[place],), (field.type,)) for row in rows if row[place] is not None]
        low, high = lows[place], highs[place]
        # Writers differ on NaN and on the zeros.
        if not held or low is None or high is None or field.type.root in _FLOATS:
            continue
        if min(held) < sort_key((low,), (field.type,)) or max(held) > sort_key((high,), (field.type,)):
            raise CorruptMetadata(name, f"{field.name} from {low!r} to {high!r}, as its list states", "another value")


def require_kind(meta: Record, records: Iterable[Record], where: BranchFolders, *, changelog: bool) -> None:
    """Raises CorruptMetadata for a data file in a manifest of changelog files, and for the reverse."""
    wrong = where.is_data if changelog else where.is_changelog
    for record in records:
        file = str(record["_FILE"]["_FILE_NAME"])
        if wrong(file):
            expected, found = ("changelog", "data") if changelog else ("data", "changelog")
            raise CorruptMetadata(f"manifest/{meta['_FILE_NAME']}", f"{expected} files", f"{found} file {file}")


def require_own_bytes(storage: Storage, lists: Sequence[str]) -> None:
    """Raises CorruptMetadata if two manifests of these lists have the same bytes: one was copied over the other.

    A file has the size that its list states of it, so only manifests of one size are read. A list that is gone belongs
    to a version that has just expired.
    """
    sizes: dict[int, dict[str, None]] = {}
    for metas in at_once(partial(_sizes, storage), lists):
        for name, size in metas:
            sizes.setdefault(size, {})[name] = None
    alike = [name for names in sizes.values() if len(names) > 1 for name in names]
    seen: dict[str, str] = {}
    for name, digest in zip(alike, at_once(partial(_digest, storage), alike), strict=True):
        other = name if digest is None else seen.setdefault(digest, name)
        if other != name:
            raise CorruptMetadata(f"manifest/{name}", "content of its own", f"that of {other}")


def _sizes(storage: Storage, name: str) -> list[tuple[str, int]]:
    """Names and sizes of the manifests of a list; none if it is gone."""
    with suppress(MissingFile), decoding(f"manifest/{name}", "names and sizes of manifests"):
        return [(str(meta["_FILE_NAME"]), int(meta["_FILE_SIZE"])) for meta in read_list(storage, name).records]
    return []


def _digest(storage: Storage, name: str) -> str | None:
    """A digest of a manifest; None if it is gone."""
    with suppress(MissingFile):
        return hashlib.sha256(storage.read(f"manifest/{name}")).hexdigest()
    return None


def require_vectors(storage: Storage, before: object, index: Sequence[Record], lists: Sequence[str], name: str) -> None:
    """Raises CorruptMetadata if the version before had a vector of a file that is still live, and this one has not.

    `before`: the parent's index manifest. `lists`: this version's own base and delta list. Most vectors go with files
    that the delta list removes, so the base list is read only for other ones.
    """
    with suppress(MissingFile):
        parent = read_index(storage, before)
        gone = set(_covered(parent.records if parent else ())) - set(_covered(index))
        if gone and (kept := gone - _removed(storage, lists[-1])):
            with decoding(name, "entries of data files"):
                entries = chain.from_iterable(read_entries(storage, each) for each in lists)
                live = set(map(_file, merge_entries(entries)))
            lost = sorted(file for _, _, file in kept & live)
            if lost:
                raise CorruptMetadata(name, f"a deletion vector of {lost[0]}, as the version before has", "none")


def removes_every_vector(storage: Storage, index: Sequence[Record], delta: str) -> bool:
    """Whether the commit of this delta list removes each file that has a vector in this index manifest, so that none
    is left. Never of an index of another kind."""
    vectors = all(record["_INDEX_TYPE"] == _VECTORS for record in index)
    return vectors and set(_covered(index)) <= _removed(storage, delta)


_File = tuple[bytes, int, str]
"""A data file by its partition, bucket and name."""


def _covered(index: Iterable[Record]) -> Iterator[_File]:
    for record in index:
        if record["_INDEX_TYPE"] == _VECTORS and record["_KIND"] == ADD:
            yield from ((record["_PARTITION"], record["_BUCKET"], each.data_file) for each in vector_ranges(record))


def _removed(storage: Storage, delta: str) -> set[_File]:
    """The files that a delta list removes. One that only changes its level is added again, and not among them."""
    with decoding(f"manifest/{delta}", "entries of data files"):
        entries = list(read_entries(storage, delta))
        added = {_file(entry) for entry in entries if entry["_KIND"] == ADD}
        return {_file(entry) for entry in entries} - added


def _file(entry: Record) -> _File:
    return entry["_PARTITION"], entry["_BUCKET"], entry["_FILE"]["_FILE_NAME"]
