"""Deletes -> positions of the data files' rows that they hide: vectors, position deletes and equality deletes.

Key columns are read, and of those only what may match; what is held at a time is an index of deleted keys and a batch
of rows. Iceberg table spec, "Scan Planning", "Delete Formats".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.deletes.position_deletes import read_positions
from nightkeep.formats.iceberg.deletes.vectors import read_vectors
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity, positional_of
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import Probe, probes
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.kernels.equality import EqualityIndex
from nightkeep.storage import Storage

INDEX_BYTES = 256 << 20
"""Of deleted keys as Arrow holds them. The index takes 40 bytes a key beside them: for two numbers four times this."""

Deletes = tuple[ContentFile, ...]
_NONE = BitMap64()


@dataclass(frozen=True, slots=True)
class Marked:
    """A data file and the positional deletes that hold for it, whether or not they have a row of it."""

    file: ContentFile
    held: Deletes


def marked_files(unit: IcebergUnit, files: Sequence[ContentFile]) -> tuple[Marked, ...]:
    """Each of these files of the unit with the position deletes or the vector that hold for it.

    Of data files with the same ones it is the same tuple.
    """
    ordered = sorted(unit.positional, key=lambda delete: repr(delete.identity))
    place = {delete.identity: at for at, delete in enumerate(ordered)}
    held = positional_of(unit)
    known: dict[frozenset[Identity], Deletes] = {}
    for file in files:
        if held[file.path] not in known:
            known[held[file.path]] = tuple(ordered[at] for at in sorted(place[each] for each in held[file.path]))
    return tuple(Marked(file, known[held[file.path]]) for file in files)


def hidden(
    storage: Storage, unit: IcebergUnit, files: Sequence[ContentFile], *, index_bytes: int = INDEX_BYTES
) -> Mapping[str, BitMap64]:
    """Rows of some of the unit's data files that no reader sees, by path; files without any are left out.

    Raises CorruptMetadata and MissingFile naming the delete file, also for positions beyond a file's rows.
    """
    held = positional_rows(storage, marked_files(unit, files))
    by_keys = equality_rows(storage, unit.schema, probes(unit, files), index_bytes=index_bytes)
    found = {
        path: BitMap64.union(_NONE, _NONE, *rows.values(), by_keys.get(path, _NONE)) for path, rows in held.items()
    }
    return {path: rows for path, rows in found.items() if rows}


def positional_rows(storage: Storage, targets: Sequence[Marked]) -> Mapping[str, Mapping[ContentFile, BitMap64]]:
    """What each vector and position delete file hides of these data files, those that hide nothing left out.

    By the data file's path; every delete file is read once.
    """
    found: dict[str, dict[ContentFile, BitMap64]] = {target.file.path: {} for target in targets}
    files = {target.file.path: target.file for target in targets}
    vectors = {vector: target.file for target in targets for vector in target.held if vector.is_vector}
    for vector, rows in read_vectors(storage, ((vector, file.rows) for vector, file in vectors.items())):
        found[vectors[vector].path][vector] = rows
    for delete, paths in _by_delete(targets):
        for path, rows in read_positions(storage, delete, paths).items():
            _require_within(rows, delete, files[path])
            found[path][delete] = rows
    return found


def equality_rows(
    storage: Storage, schema: IcebergSchema, found: Iterable[Probe], *, index_bytes: int = INDEX_BYTES
) -> Mapping[str, BitMap64]:
    """What equality deletes hide of the probes' data files by path, those without such rows left out.

    Keys beyond `index_bytes` are looked for in further passes over the data files' key columns: a row is hidden by
    any one of the keys.
    """
    rows: dict[str, BitMap64] = {}
    for probe in found:
        for newest, index in _indexes(storage, schema, probe, index_bytes):
            for file in (each for each in probe.files if each.sequence_number < newest):
                positions = _matches(storage, schema, file, probe.field_ids, index=index)
                if len(positions):
                    rows[file.path] = rows.get(file.path, _NONE) | BitMap64(from_positions(positions, Width.BITS_64))
    return rows


def _indexes(
    storage: Storage, schema: IcebergSchema, probe: Probe, index_bytes: int
) -> Iterator[tuple[int, EqualityIndex]]:
    """Each with the greatest sequence number that a key of it was deleted at."""
    pending: list[tuple[pa.Table, int]] = []
    held = 0
    for delete in probe.deletes:
        for keys in IcebergFileReader(storage, schema, delete).keys(probe.field_ids):
            pending.append((keys, delete.sequence_number))
            held += keys.nbytes
            if held >= index_bytes:
                yield max(number for _, number in pending), EqualityIndex.of(pending)
                pending, held = [], 0
    if pending:
        yield max(number for _, number in pending), EqualityIndex.of(pending)


def _matches(
    storage: Storage, schema: IcebergSchema, file: ContentFile, field_ids: Sequence[int], *, index: EqualityIndex
) -> npt.NDArray[np.int64]:
    start, found = 0, [np.empty(0, np.int64)]
    for keys in IcebergFileReader(storage, schema, file).keys(field_ids):
        found.append(start + index.hidden(keys, file.sequence_number))
        start += keys.num_rows
    if start != file.rows:
        raise CorruptMetadata(file.path, f"{file.rows} rows, as its manifest counts", str(start))
    return np.concatenate(found)


def _by_delete(targets: Iterable[Marked]) -> Iterator[tuple[ContentFile, Set[str]]]:
    """Position delete files with the paths that they may hold for.

    What data files have the same tuple of is looked at once: there may be thousands of both.
    """
    alike: dict[int, tuple[Deletes, set[str]]] = {}
    for target in targets:
        alike.setdefault(id(target.held), (target.held, set()))[1].add(target.file.path)
    found: dict[Identity, tuple[ContentFile, list[set[str]]]] = {}
    for held, paths in alike.values():
        for delete in (each for each in held if not each.is_vector):
            found.setdefault(delete.identity, (delete, []))[1].append(paths)
    for delete, parts in found.values():
        yield delete, parts[0] if len(parts) == 1 else set[str]().union(*parts)


def _require_within(rows: BitMap64, delete: ContentFile, file: ContentFile) -> None:
    if rows and rows.max() >= file.rows:
        raise CorruptMetadata(delete.path, f"positions below the {file.rows} rows of {file.path}", str(rows.max()))
