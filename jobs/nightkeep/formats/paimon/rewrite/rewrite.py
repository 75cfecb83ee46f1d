"""Task -> new files of one bucket. Of a table with vectors, rows that lifted rows replace are marked as deleted.

Runs on an executor. Reads key columns and the rows that move. Only a commit references the new files. Follows
LookupMergeTreeCompactRewriter, LookupChangelogMergeFunctionWrapper and LookupMergeFunction of Paimon 2.0.0, and
MergeTreeCompactRewriter for a table without vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import naming
from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, SEQUENCE, PaimonFileReader, key_columns
from nightkeep.formats.paimon.data.sequence import sequence_order
from nightkeep.formats.paimon.data.write import PaimonFileWriter, WrittenPaimonFile
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors, vector_file
from nightkeep.formats.paimon.metadata.merge_engine import MergeRules, merge_rules
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import keeps_first_row
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.rewrite.candidates import (
    LEVEL,
    POSITION,
    SOURCE,
    keys_of,
    level0_only,
    lowest_level_only,
    old_rows,
)
from nightkeep.formats.paimon.rewrite.changelog import Touched, changelog_writer, touched_keys, untouched_above
from nightkeep.formats.paimon.rewrite.first_rows import without_known
from nightkeep.formats.paimon.rewrite.fold import fold
from nightkeep.formats.paimon.rewrite.gather import WantedRows, gather
from nightkeep.formats.paimon.rewrite.levels import sorted_runs
from nightkeep.formats.paimon.rewrite.lookup import Hits, find_replaced
from nightkeep.formats.paimon.rewrite.overlaps import newer_below
from nightkeep.formats.paimon.rewrite.sorted_merge import merge_sorted
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.kernels.merge import in_order, keep_latest
from nightkeep.model import Rewrite, Run, TaskCost
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.storage import Storage

_PLACE = [SOURCE, POSITION]
_NO_COST = TaskCost(0.0, 0.0, 0, "")


@dataclass(frozen=True, slots=True)
class UpgradeTask:
    """One bucket's compaction, planned from metadata. `values_needed`: old rows compete by sequence field, or are
    merged with new ones. `looks_up`: rows below are looked up and marked, as the table has vectors. Otherwise files are
    only merged with each other, and retracts stay unless `drops_retracts`."""

    bucket: Bucket
    steps: tuple[Step, ...]
    output_level: int
    target_bytes: int
    values_needed: bool
    looks_up: bool = True
    drops_retracts: bool = True


def rewrite(storage: Storage, task: UpgradeTask, run: Run) -> Rewrite[BucketEdit]:
    """Do every step of `task`, then write the bucket's vector file if any vector changed."""
    bucket = task.bucket
    work = _Work(storage, task, PaimonNaming(run, bucket.key), run.now_ms)
    with naming(bucket.key, "rows as their schema and level promise"):
        for step in task.steps:
            work.do(step)
        index, name = vector_file(storage, bucket, work.vectors, gone=work.gone, naming=work.naming)
    edit = BucketEdit(
        bucket.partition_bytes, bucket.key.bucket or 0, bucket.total_buckets,
        tuple(work.removed), tuple(work.added), index, tuple(work.changelog),
    )  # fmt: skip
    outputs = [*work.outputs, *([name] if name else [])]
    return Rewrite(
        bucket.key, edit, tuple(outputs), work.rows_written, work.rows_marked, tuple(work.findings), _NO_COST
    )


class _Work:
    """The state of one task while it works on its bucket."""

    def __init__(self, storage: Storage, task: UpgradeTask, naming: PaimonNaming, now_ms: int) -> None:
        self.storage, self.task, self.naming, self.now_ms = storage, task, naming, now_ms
        self.rules = merge_rules(task.bucket.schemas.current)
        self.teller = changelog_writer(
            storage, task.bucket, naming, level=task.output_level, now_ms=now_ms, target_bytes=task.target_bytes
        )
        self.vectors = dict(read_vectors(storage, task.bucket))
        self.gone: set[str] = set()
        self.removed: list[Record] = []
        self.added: list[Record] = []
        self.changelog: list[Record] = []
        self.outputs: list[str] = []
        self.findings: list[str] = []
        self.rows_written = 0
        self.rows_marked = 0

    def do(self, step: Step) -> None:
        if step.kind is StepKind.MERGE or self._must_lose_retracts(step.files[0]):
            self._merge(step.files)
        else:
            self._upgrade(step.files[0])

    def _must_lose_retracts(self, file: PaimonDataFile) -> bool:
        """Whether a file to be lifted has retracts that must end here. Some writers count none in their metadata."""
        if not self.task.drops_retracts or (self.task.looks_up and file.level != 0):
            return False
        kinds = PaimonFileReader(self.storage, self.task.bucket, file).read([KIND]).column(KIND)
        return bool(pc.any(pc.is_in(kinds, _RETRACTS)).as_py())

    def _upgrade(self, file: PaimonDataFile) -> None:
        if file.level == 0 and self.task.looks_up:
            rows = keys_of(self.storage, self.task.bucket, (file,), self.vectors)
            keys = rows.select(key_columns(self.task.bucket))
            hits = self._mark(keys, rows.column(SEQUENCE), replaces=True)
            if self.teller is not None:
                touched = untouched_above(keys, self.task.bucket.files).with_found(hits)
                self._tell(self.teller.of_lifted(touched, file))
        self.removed.append(file.record)
        self.added.append(file.record | {"_LEVEL": self.task.output_level})

    def _merge(self, files: Sequence[PaimonDataFile]) -> None:
        """Merge overlapping files into new ones on the output level."""
        bucket, sources = self.task.bucket, _oldest_first(files)
        rows, touched = keys_of(self.storage, bucket, sources, self.vectors), None
        if self.task.looks_up and any(file.level == 0 for file in files):
            sources = _numbered(bucket, sources)
            rows, touched = self._with_replaced(rows, sources)
        written = self._write(rows, sources)
        if self.teller is not None and touched is not None:
            self._tell(self.teller.of_written(touched, written))
        self.removed += [file.record for file in files]
        self.gone |= {file.name for file in files}

    def _tell(self, written: Sequence[WrittenPaimonFile]) -> None:
        self.changelog += [file.record for file in written]
        self.outputs += [file.path for file in written]

    def _with_replaced(self, rows: pa.Table, sources: Sequence[PaimonDataFile]) -> tuple[pa.Table, Touched | None]:
        """Mark the rows that level-0 rows replace below. If values are needed, add those old rows as candidates.

        Also the rows that these keys had, if the changelog needs them.
        """
        bucket, keys = self.task.bucket, key_columns(self.task.bucket)
        rows, told = lowest_level_only(rows, keys), None
        fresh = level0_only(rows, keys)
        if keeps_first_row(bucket.schemas.current):
            return without_known(self.storage, bucket, rows, fresh.select(keys), below=self.task.output_level), None
        hits = self._mark(fresh.select(keys), fresh.column(SEQUENCE), replaces=not self.task.values_needed)
        if self.teller is not None:
            told = touched_keys(rows, keys, sources, level=LEVEL, place=(SOURCE, POSITION)).with_found(hits)
        if not self.task.values_needed:
            return rows, told
        numbered = {file.name: number for number, file in enumerate(sources)}
        old = [old_rows(self.storage, bucket, hit, source=numbered[hit.file.name]) for hit in hits]
        # Old rows come last: an old row that equals the newest candidate wins (KeyValueBuffer.insertInto).
        return pa.concat_tables([rows, *old]), told

    def _mark(self, keys: pa.Table, sequences: ChunkedArray, *, replaces: bool) -> tuple[Hits, ...]:
        """Delete the rows that `keys` meet, through vectors. `replaces`: whatever their sequence numbers say."""
        hits = find_replaced(self.storage, self.task.bucket, keys, below=self.task.output_level, marked=self.vectors)
        for hit in hits:
            positions = BitMap64(from_positions(hit.positions, Width.BITS_64))
            self.vectors[hit.file.name] = self.vectors.get(hit.file.name, BitMap64()) | positions
            self.rows_marked += len(hit.positions)
            if replaces:
                self.findings += newer_below(self.storage, self.task.bucket, keys, sequences, hit)
        return hits

    def _write(self, rows: pa.Table, sources: Sequence[PaimonDataFile]) -> list[WrittenPaimonFile]:
        """New files of what the merge makes of `rows`: of each key its newest row, or all of them folded."""
        writer = PaimonFileWriter(
            self.storage, self.task.bucket, self.naming, level=self.task.output_level, now_ms=self.now_ms
        )
        chunk_rows = writer.chunk_rows(self.task.target_bytes)
        if self.rules is None:
            wanted = _winners(rows, self.task.bucket, drops_retracts=self.task.drops_retracts)
            chunks = self._gathered(
                rows.select(_PLACE).take(wanted), sources, writer, range(0, len(wanted), chunk_rows)
            )
        else:
            chunks = self._folded(rows, sources, writer, self.rules, chunk_rows=chunk_rows)
        written = writer.write(chunks, target_bytes=self.task.target_bytes)
        self.added += [file.record for file in written]
        self.outputs += [file.path for file in written]
        self.rows_written += sum(file.record["_ROW_COUNT"] for file in written)
        return written

    def _folded(
        self, rows: pa.Table, sources: Sequence[PaimonDataFile], writer: PaimonFileWriter, rules: MergeRules, *,
        chunk_rows: int,
    ) -> Iterator[pa.Table]:  # fmt: skip
        bucket = self.task.bucket
        ordered, starts = in_order(rows, keys=key_columns(bucket), order=sequence_order(bucket.schemas.current))
        # A chunk ends where a key ends.
        edges = np.unique(np.searchsorted(starts, np.arange(0, len(ordered), chunk_rows)))
        edges = edges[edges < len(starts)]
        chunks = self._gathered(rows.select(_PLACE).take(ordered), sources, writer, starts[edges].tolist())
        keeps_kinds = 0 not in pc.unique(rows.column(LEVEL)).to_numpy()
        for chunk, (first, stop) in zip(chunks, pairwise([*edges, len(starts)]), strict=True):
            own = starts[first:stop] - starts[first]
            if self.task.looks_up:
                merged = fold(chunk, own, rules, keeps_kinds=keeps_kinds)
            else:
                merged = merge_sorted(chunk, own, rules, drops_retracts=self.task.drops_retracts)
            if merged.num_rows:
                yield merged

    def _gathered(
        self, rows: pa.Table, sources: Sequence[PaimonDataFile], writer: PaimonFileWriter, starts: Sequence[int]
    ) -> Iterator[pa.Table]:
        """Every column of `rows`, which are in key order, in chunks from one of `starts` to the next."""
        of_row, at = rows.column(SOURCE).to_numpy(), rows.column(POSITION).to_numpy()
        opened = {
            int(number): WantedRows(
                PaimonFileReader(self.storage, self.task.bucket, sources[number]), at[of_row == number]
            )
            for number in np.unique(of_row)
        }
        return gather(opened, of_row, columns=writer.columns, starts=starts)


_RETRACTS = pa.array(RETRACT_KINDS, pa.int8())


def _numbered(bucket: Bucket, sources: Sequence[PaimonDataFile]) -> tuple[PaimonDataFile, ...]:
    """The bucket's files: the merged files first, because they are numbered already, then all others."""
    named = {file.name for file in sources}
    return (*sources, *(file for file in bucket.files if file.name not in named))


def _oldest_first(files: Sequence[PaimonDataFile]) -> tuple[PaimonDataFile, ...]:
    return tuple(file for run in reversed(sorted_runs(files)) for file in run.files)


def _winners(rows: pa.Table, bucket: Bucket, *, drops_retracts: bool) -> npt.NDArray[np.int64]:
    """Rows to write, in key order: the newest of each key, which may be a retract unless those are dropped."""
    kept = keep_latest(rows, keys=key_columns(bucket), order=sequence_order(bucket.schemas.current))
    if not drops_retracts:
        return kept
    kinds = rows.column(KIND).take(kept).to_numpy()
    return kept[~np.isin(kinds, RETRACT_KINDS)]
