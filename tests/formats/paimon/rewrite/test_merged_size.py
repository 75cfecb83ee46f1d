"""How large the files of a merge are expected to be, and how many."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.made_bucket import MadeBucket, Row

from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.merged_size import merged_size
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind


def made(*runs: Sequence[int]) -> Bucket:
    """A bucket of runs with these keys, the first on the top level."""
    bucket = MadeBucket({})
    for number, keys in enumerate(runs):
        bucket.add(0 if number else 5, [Row(key, f"value {key}", 1000 * number + key) for key in keys])
    return bucket.bucket()


def size_of(bucket: Bucket, *, target_bytes: int = 1 << 30, levels: Sequence[int] = (0, 5)) -> tuple[int, int]:
    schema = bucket.schemas.current
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    steps = [Step(StepKind.MERGE, tuple(file for file in bucket.files if file.level in levels))]
    return merged_size(bucket, steps, key_types=types, target_bytes=target_bytes)


def test_new_versions_of_known_keys_make_a_file_no_larger() -> None:
    bucket = made(range(1000), range(0, 1000, 10), range(5, 1000, 10))
    files, size = size_of(bucket)
    assert files == 1 and size == pytest.approx(max(file.bytes for file in bucket.files), rel=0.2)


def test_rows_of_runs_alike_are_taken_to_have_keys_of_their_own() -> None:
    bucket = made(range(0, 900, 3), range(1, 900, 3), range(2, 900, 3))
    one = bucket.files[0]
    files, size = size_of(bucket)
    assert files == 1 and size > 1.5 * one.bytes


def test_keys_that_were_met_again_above_a_large_run_count_once() -> None:
    bucket = made(range(1000), range(0, 1000, 3), range(1, 1000, 3))
    apart = sum(file.bytes for file in bucket.files if file.level == 0)
    assert size_of(bucket, levels=(0,))[1] < 0.95 * apart


def test_files_roll_at_the_target() -> None:
    bucket = made(range(1000), range(0, 1000, 3))
    files, size = size_of(bucket, target_bytes=1000)
    assert files > 1 and size > size_of(bucket)[1]


def test_files_that_only_change_their_level_are_not_written() -> None:
    bucket = opened(SAMPLES / "stock").snapshot().units[0]
    assert merged_size(bucket, [Step(StepKind.UPGRADE, bucket.files)], key_types=[], target_bytes=1) == (0, 0)
