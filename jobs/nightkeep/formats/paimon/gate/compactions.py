"""One compaction's change of a bucket, and its vectors -> rows that became visible again. Reads no data file.

Paimon Java's committer (C/operation/commit/ConflictDetection) does not compare deletion vectors. It accepts a
compaction that was prepared before vectors which it should have applied, and the rows that these hide come back. Three
rules of a compaction are checked:

- It writes no more rows than its inputs show. Above level 0 each key is shown once, so a compaction of such files
writes exactly the rows that their vectors leave. A stale compaction also writes the rows that later vectors hide.

- It unhides no row of a file that it keeps. A bucket's vector file replaces the previous one as a whole.

- It marks rows only in files that exist. Marks in a file that an earlier commit removed hide nothing.

An upgrade takes every level-0 file of its bucket, so a compaction prepared before it has no level-0 input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from pyroaring import BitMap64

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.deletes.bucket_vectors import index_path
from nightkeep.formats.paimon.deletes.vectors import decode_vector
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange
from nightkeep.storage import Storage


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of a bucket at one version, by data file. `file` is their vector file."""

    file: str | None = None
    ranges: Mapping[str, VectorRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BucketChange:
    """A commit's change of a bucket: raw _FILE records by name. Files that only change their level are left out."""

    removed: Mapping[str, Record]
    added: Mapping[str, Record]


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding on rows visible again. With `marked`, it holds only if an earlier commit removed that file."""

    detail: str
    marked: str | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A bucket before and after one commit. `live` are its files after the commit."""

    storage: Storage
    unit: Bucket
    change: BucketChange
    before: Vectors
    after: Vectors
    live: Set[str]


def shown_again(compaction: Compaction) -> Iterator[Shown]:
    """Findings on rows that readers see after the commit and did not see before it."""
    yield from _rewritten(compaction)
    yield from unhidden(compaction)


def unhidden(compaction: Compaction) -> Iterator[Shown]:
    """Findings on vectors alone. They also hold of a commit that changes rows, which may write more than it removes."""
    if compaction.before.file != compaction.after.file:
        yield from _kept(compaction)
        yield from _marked(compaction)


def _rewritten(compaction: Compaction) -> Iterator[Shown]:
    inputs, outputs = compaction.change.removed, compaction.change.added
    hidden = sum(_cardinality(compaction, compaction.before, name) for name in inputs)
    held, written = (sum(int(file["_ROW_COUNT"]) for file in files.values()) for files in (inputs, outputs))
    if written > held - hidden:
        yield Shown(
            f"{compaction.unit.key}: {written:,} rows were written of {len(inputs)} files which show "
            f"{held - hidden:,}, {hidden:,} being hidden by deletion vectors"
        )


def _kept(compaction: Compaction) -> Iterator[Shown]:
    lifts = any(int(file["_LEVEL"]) == 0 for file in compaction.change.removed.values())
    for name in sorted((compaction.before.ranges.keys() & compaction.live) - compaction.change.removed.keys()):
        old, new = (_cardinality(compaction, vectors, name) for vectors in (compaction.before, compaction.after))
        lost = max(0, old - new)
        if not lost and not lifts:
            # An equal number of marks may be of other rows.
            was, now = (_positions(compaction, vectors, name) for vectors in (compaction.before, compaction.after))
            lost = len(was - now)
        if lost:
            yield Shown(f"{compaction.unit.key}: {lost:,} rows of {name} are no longer hidden by its deletion vector")


def _marked(compaction: Compaction) -> Iterator[Shown]:
    present = compaction.live | compaction.change.removed.keys()
    for name in sorted(compaction.after.ranges.keys() - present):
        old, new = (_cardinality(compaction, vectors, name) for vectors in (compaction.before, compaction.after))
        if new > old:
            detail = f"{compaction.unit.key}: {new - old:,} rows were marked as deleted in {name}, which is gone"
            yield Shown(detail, marked=name)


def _cardinality(compaction: Compaction, vectors: Vectors, name: str) -> int:
    where = vectors.ranges.get(name)
    if where is None:
        return 0
    return len(_positions(compaction, vectors, name)) if where.cardinality is None else where.cardinality


def _positions(compaction: Compaction, vectors: Vectors, name: str) -> BitMap64:
    if name not in vectors.ranges or vectors.file is None:
        return BitMap64()
    path = index_path(compaction.unit, vectors.file)
    return BitMap64(decode_vector(compaction.storage.read(path), vectors.ranges[name], subject=path))
