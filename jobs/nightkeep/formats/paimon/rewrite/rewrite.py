"""Task -> new files of one bucket. Of a table with vectors, rows that upgraded rows replace are marked as deleted.

Runs on an executor. Reads key columns and the rows that move. Only a commit references the new files. Follows
LookupMergeTreeCompactRewriter, LookupChangelogMergeFunctionWrapper and LookupMergeFunction of Paimon 2.0.0, and
MergeTreeCompactRewriter for a table without vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import naming
from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, SEQUENCE, PaimonFileReader, key_columns
from nightkeep.formats.paimon.data.sequence import sequence_order
from nightkeep.formats.paimon.data.write import PaimonFileWriter, WrittenPaimonFile
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors, vector_file
from nightkeep.formats.paimon.metadata.changelog import ChangelogRules, lowest_level_counts
from nightkeep.formats.paimon.metadata.merge_engine import MergeRules, merge_rules
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import keeps_first_row
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.rewrite.candidates import (
    LEVEL,
    POSITION,
    SOURCE,
    level0_only,
    lowest_level_only,
    old_rows,
)
from nightkeep.formats.paimon.rewrite.changelog import changelog_writer
from nightkeep.formats.paimon.rewrite.expired_rows import expired_positions, without_expired
from nightkeep.formats.paimon.rewrite.first_rows import without_known
from nightkeep.formats.paimon.rewrite.fold import fold
from nightkeep.formats.paimon.rewrite.gather import GATHERED_ROWS, ForwardFiles, completed, even_chunks, run_slots
from nightkeep.formats.paimon.rewrite.key_ranges import key_ranges, read_columns
from nightkeep.formats.paimon.rewrite.lookup import Hits, find_replaced
from nightkeep.formats.paimon.rewrite.overlaps import NewerRows, newer_below
from nightkeep.formats.paimon.rewrite.sorted_merge import merge_sorted
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind
from nightkeep.formats.paimon.rewrite.touched import Touched, TouchedStore, touched_keys, untouched_above
from nightkeep.formats.paimon.rewrite.winners import numbered, oldest_first, winners
from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.kernels.merge import in_order
from nightkeep.model import Intent, Rewrite, Run, TaskCost
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

_NO_COST = TaskCost(0.0, 0.0, 0, "")


@dataclass(frozen=True, slots=True)
class UpgradeTask:
    """One bucket's compaction, planned from metadata. `values_needed`: old rows compete by sequence field, or are
    merged with new ones. `looks_up`: rows below are looked up, and with `marks` marked in vectors. Without `marks`
    retracts stay unless `drops_retracts`. `clock_ms`: rows that have expired by then go; None if none expire."""

    bucket: Bucket
    steps: tuple[Step, ...]
    output_level: int
    target_bytes: int
    values_needed: bool
    looks_up: bool = True
    marks: bool = True
    drops_retracts: bool = True
    clock_ms: int | None = None


def rewrite(storage: Storage, task: UpgradeTask, run: Run) -> Rewrite[BucketEdit]:
    """Do every step of `task`, then write the bucket's vector file if any vector changed."""
    bucket = task.bucket
    work = _BucketState(storage, task, PaimonNaming(run, bucket.key), run.now_ms)
    with naming(bucket.key, "rows as their schema and level promise"):
        for step in task.steps:
            work.do(step)
        work.mark_expired()
        index, name = vector_file(storage, bucket, work.vectors, gone=work.gone, naming=work.naming)
    edit = BucketEdit(
        bucket.partition_bytes,
        bucket.key.bucket or 0,
        bucket.total_buckets,
        tuple(work.removed),
        tuple(work.added),
        index,
        tuple(work.changelog),
        intent=Intent(clock_ms=task.clock_ms),
    )
    outputs = [*work.outputs, *([name] if name else [])]
    findings = tuple(str(newer) for newer in work.newer.values())
    return Rewrite(
        bucket.key, edit, tuple(outputs), work.rows_written, work.rows_marked, findings, _NO_COST, work.rows_expired
    )


class _BucketState:
    """The state of one task while it works on its bucket."""

    def __init__(self, storage: Storage, task: UpgradeTask, naming: PaimonNaming, now_ms: int) -> None:
        self.storage, self.task, self.naming, self.now_ms = storage, task, naming, now_ms
        self.rules = merge_rules(task.bucket.schemas.current)
        self.changes = changelog_writer(
            storage, task.bucket, naming, level=task.output_level, now_ms=now_ms, target_bytes=task.target_bytes
        )
        self.vectors = dict(read_vectors(storage, task.bucket))
        self.gone: set[str] = set()
        self.removed: list[Record] = []
        self.added: list[Record] = []
        self.changelog: list[Record] = []
        self.outputs: list[str] = []
        self.newer: dict[str, NewerRows] = {}
        self.rows_written = 0
        self.rows_marked = 0
        self.rows_expired = 0

    def do(self, step: Step) -> None:
        if step.kind is StepKind.MERGE or self._must_lose_retracts(step.files[0]):
            self._merge(step.files)
        else:
            self._upgrade(step.files[0])

    def _must_lose_retracts(self, file: PaimonDataFile) -> bool:
        """Whether a file to be upgraded has retracts that must end here. Some writers count none in their metadata."""
        if not self.task.drops_retracts or (self.task.marks and file.level != 0):
            return False
        reader = PaimonFileReader(self.storage, self.task.bucket, file)
        batches = reader.batches([KIND], range(len(reader.starts) - 1))
        return any(pc.any(pc.is_in(rows.column(KIND), _RETRACTS)).as_py() for rows in batches)

    def _upgrade(self, file: PaimonDataFile) -> None:
        ranges, before = key_ranges(self.storage, self.task.bucket, (file,), self.vectors), self.task.bucket.files
        if file.level == 0 and self.task.looks_up:
            touched = map(self._marked_by, ranges)
            if self.changes is not None:
                self._add_changelog(self.changes.of_lifted(touched, before, file))
            for _ in touched:
                pass
        elif self.changes is not None and file.level < self.changes.rules.lowest_known:
            self._add_changelog(self.changes.of_lifted(map(self._fresh, ranges), before, file))
        self.removed.append(file.record)
        self.added.append(file.record | {"_LEVEL": self.task.output_level})

    def _marked_by(self, rows: pa.Table) -> tuple[Touched, Rows]:
        """Mark what rows of an upgraded file replace: their keys with the rows before, and their positions."""
        keys = rows.select(key_columns(self.task.bucket))
        hits = self._mark(keys, rows.column(SEQUENCE), replaces=True)
        return untouched_above(keys, self.task.bucket.files).with_found(hits), rows.column(POSITION).to_numpy()

    def _fresh(self, rows: pa.Table) -> tuple[Touched, Rows]:
        """Keys of rows of an upgraded file that meet no row, and the positions of these rows."""
        keys = rows.select(key_columns(self.task.bucket))
        return untouched_above(keys, self.task.bucket.files), rows.column(POSITION).to_numpy()

    def _merge(self, files: Sequence[PaimonDataFile]) -> None:
        """Merge overlapping files into new ones on the output level."""
        bucket, sources = self.task.bucket, oldest_first(files)
        ranges = key_ranges(self.storage, bucket, sources, self.vectors)
        lifts = any(file.level == 0 for file in files)
        with TouchedStore() as replaced:
            if self.task.looks_up and lifts:
                sources = numbered(bucket, sources)
                ranges = (self._with_replaced(rows, sources, replaced) for rows in ranges)
            elif lowest_level_counts(bucket.schemas.current):
                ranges = (lowest_level_only(rows, key_columns(bucket)) for rows in ranges)
            elif self.changes is not None:
                ranges = (self._with_touched(rows, sources, replaced, self.changes.rules) for rows in ranges)
            written = self._write(ranges, sources, keeps_kinds=not lifts)
            if self.changes is not None:
                self._add_changelog(self.changes.of_written(replaced.ranges(), sources, written))
        self.removed += [file.record for file in files]
        self.gone |= {file.name for file in files}

    def _with_touched(
        self, rows: pa.Table, sources: Sequence[PaimonDataFile], replaced: TouchedStore, rules: ChangelogRules
    ) -> pa.Table:
        """The rows. Those that their keys had are added to `replaced`."""
        replaced.add(
            touched_keys(
                rows,
                key_columns(self.task.bucket),
                sources,
                level=LEVEL,
                place=(SOURCE, POSITION),
                lowest_known=rules.lowest_known,
            )
        )
        return rows

    def _add_changelog(self, written: Sequence[WrittenPaimonFile]) -> None:
        self.changelog += [file.record for file in written]
        self.outputs += [file.path for file in written]

    def _with_replaced(self, rows: pa.Table, sources: Sequence[PaimonDataFile], replaced: TouchedStore) -> pa.Table:
        """Find the rows that level-0 rows replace below. If values are needed, add those old rows as candidates.

        The rows that these keys had are added to `replaced` if the changelog needs them.
        """
        bucket, keys = self.task.bucket, key_columns(self.task.bucket)
        rows = lowest_level_only(rows, keys)
        fresh = level0_only(rows, keys)
        if keeps_first_row(bucket.schemas.current):
            rows = without_known(self.storage, bucket, rows, fresh.select(keys), below=self.task.output_level)
            if self.changes is not None:
                replaced.add(touched_keys(rows, keys, sources, level=LEVEL, place=(SOURCE, POSITION)).without_rows())
            return rows
        hits = self._mark(fresh.select(keys), fresh.column(SEQUENCE), replaces=not self.task.values_needed)
        if self.changes is not None:
            replaced.add(touched_keys(rows, keys, sources, level=LEVEL, place=(SOURCE, POSITION)).with_found(hits))
        if not self.task.values_needed:
            return rows
        numbered = {file.name: number for number, file in enumerate(sources)}
        old = [old_rows(self.storage, bucket, hit, source=numbered[hit.file.name]) for hit in hits]
        # Old rows come last: an old row that equals the newest candidate wins (KeyValueBuffer.insertInto).
        return pa.concat_tables([rows, *old])

    def _mark(self, keys: pa.Table, sequences: ChunkedArray, *, replaces: bool) -> tuple[Hits, ...]:
        """The rows that `keys` meet, deleted through vectors. `replaces`: whatever their sequence numbers are."""
        hits = find_replaced(self.storage, self.task.bucket, keys, below=self.task.output_level, marked=self.vectors)
        for hit in hits:
            if self.task.marks:
                positions = BitMap64(from_positions(hit.positions, Width.BITS_64))
                self.vectors[hit.file.name] = self.vectors.get(hit.file.name, BitMap64()) | positions
                self.rows_marked += len(hit.positions)
            newer = newer_below(self.storage, self.task.bucket, sequences, hit) if replaces else None
            if newer is not None:
                known = self.newer.get(newer.name)
                self.newer[newer.name] = newer if known is None else known + newer
        return hits

    def _write(
        self, ranges: Iterable[pa.Table], sources: Sequence[PaimonDataFile], *, keeps_kinds: bool
    ) -> list[WrittenPaimonFile]:
        """Write the merged rows into new files, one range of keys after the other: the newest row of each key, or
        all its rows folded. `keeps_kinds`: no file is of level 0."""
        bucket, level = self.task.bucket, self.task.output_level
        writer = PaimonFileWriter(self.storage, bucket, self.naming, level=level, now_ms=self.now_ms)
        count = writer.chunk_rows(self.task.target_bytes)
        size = min(count, GATHERED_ROWS)
        files = ForwardFiles(
            self.storage, bucket, sources, columns=writer.columns, slots=run_slots(sources), known=read_columns(bucket)
        )
        pieces = (
            piece
            for rows in (some.combine_chunks() for some in ranges)
            for piece in (
                self._newest(rows, files, size)
                if self.rules is None
                else self._folded(rows, files, self.rules, size, keeps_kinds=keeps_kinds)
            )
        )
        written = writer.write(even_chunks(self._unexpired(pieces), count), target_bytes=self.task.target_bytes)
        self.added += [file.record for file in written]
        self.outputs += [file.path for file in written]
        self.rows_written += sum(file.record["_ROW_COUNT"] for file in written)
        return written

    def _newest(self, rows: pa.Table, files: ForwardFiles, size: int) -> Iterator[pa.Table]:
        wanted = winners(rows, self.task.bucket, drops_retracts=self.task.drops_retracts)
        return completed(files, rows, wanted, starts=range(0, len(wanted), size))

    def _unexpired(self, chunks: Iterable[pa.Table]) -> Iterator[pa.Table]:
        schema, clock_ms = self.task.bucket.schemas.current, self.task.clock_ms
        for chunk in chunks:
            kept = chunk if clock_ms is None else without_expired(chunk, schema, clock_ms)
            self.rows_expired += chunk.num_rows - kept.num_rows
            if kept.num_rows:
                yield kept

    def mark_expired(self) -> None:
        """Mark the expired rows of files that stay as they are, so that readers see no expired row of the bucket."""
        if self.task.clock_ms is None or not self.task.marks:
            return
        bucket, lifted = self.task.bucket, {record["_FILE_NAME"] for record in self.added}
        stay = [f for f in bucket.files if f.name not in self.gone and (f.level > 0 or f.name in lifted)]
        fresh = expired_positions(self.storage, bucket, stay, self.vectors, clock_ms=self.task.clock_ms)
        for name, positions in fresh.items():
            self.vectors[name] = self.vectors.get(name, BitMap64()) | positions
            self.rows_expired += len(positions)

    def _folded(
        self, rows: pa.Table, files: ForwardFiles, rules: MergeRules, size: int, *, keeps_kinds: bool
    ) -> Iterator[pa.Table]:
        bucket = self.task.bucket
        ordered, starts = in_order(rows, keys=key_columns(bucket), order=sequence_order(bucket.schemas.current))
        # A chunk ends where a key ends.
        edges = np.unique(np.searchsorted(starts, np.arange(0, len(ordered), size)))
        edges = edges[edges < len(starts)]
        chunks = completed(files, rows, ordered, starts=starts[edges].tolist())
        for chunk, (first, stop) in zip(chunks, pairwise([*edges, len(starts)]), strict=True):
            own = starts[first:stop] - starts[first]
            if self.task.looks_up and (self.task.marks or not keeps_kinds):
                keeps_deletes = not self.task.drops_retracts
                yield fold(chunk, own, rules, keeps_kinds=keeps_kinds, keeps_deletes=keeps_deletes)
            else:
                yield merge_sorted(chunk, own, rules, drops_retracts=self.task.drops_retracts)


_RETRACTS = pa.array(RETRACT_KINDS, pa.int8())
