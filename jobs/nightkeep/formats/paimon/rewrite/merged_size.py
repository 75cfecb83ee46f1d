"""Steps of a compaction -> how many files it writes, and their bytes, as metadata lets expect. Pure.

How many rows a merge leaves is not in metadata. Where one run has most rows of a bucket, new rows are taken to be new
versions of keys that it has, any key as likely as the others; elsewhere every row to have a key of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nightkeep.clustering.file_bytes import FileBytes
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.rewrite.levels import sorted_runs
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind, sections

_OWN_COLUMNS = 2
"""Beside its columns and its keys once more, a file has each row's sequence number and kind."""


def merged_size(
    bucket: Bucket, todo: Sequence[Step], *, key_types: Sequence[PaimonType], target_bytes: int
) -> tuple[int, int]:
    """How many files the merges of `todo` write, and their bytes."""
    schema = bucket.schemas.current
    columns = len(schema.fields) + len(schema.trimmed_keys) + _OWN_COLUMNS
    found = FileBytes.of([(file.rows, file.bytes) for file in bucket.files], columns=columns)
    files, size = 0, 0
    for step in todo:
        if step.kind is StepKind.MERGE:
            rows = sum(_rows(section, bucket) for section in sections(step.files, key_types))
            # A file ends once it has reached the target, so that the last one is small.
            count = max(1, math.ceil(found.size(rows) / target_bytes))
            files, size = files + count, size + found.size(rows, count)
    return files, size


def _rows(section: Sequence[Sequence[PaimonDataFile]], bucket: Bucket) -> float:
    """The rows that a merge of these runs leaves."""
    runs = sorted(sum(file.rows for file in run) for run in section)
    every = [sum(file.rows for file in run.files) for run in sorted_runs(bucket.files)]
    known = max(every)
    if 2 * known < sum(every):
        return sum(runs)
    if runs[-1] == known:
        return known
    # So many different keys are in so many rows with keys taken at random from the known ones.
    return known * -math.expm1(-sum(runs) / known)
