"""Rows that are newer than the level-0 rows that replace them are counted."""

import numpy as np
import pyarrow as pa
from tests.formats.paimon.made_bucket import RUN, MadeBucket, Row
from tests.formats.paimon.rewrite.test_rewrite import lifting

from nightkeep.formats.paimon.rewrite.lookup import find_rows
from nightkeep.formats.paimon.rewrite.overlaps import newer_below
from nightkeep.formats.paimon.rewrite.rewrite import rewrite


def test_keys_that_two_writers_numbered_are_counted() -> None:
    made = MadeBucket()
    lower = made.add(5, [Row(key, "old", 10 + key) for key in range(8)])
    made.add(0, [Row(key, "new", 12) for key in range(8)])
    done = rewrite(made.storage, lifting(made, 4), RUN)
    assert done.findings == (
        f"overlapping sequence numbers of two writers: 6 keys of {lower} are newer than the level-0 rows that "
        "replace them",
    )


def test_rows_that_are_older_are_no_finding() -> None:
    made = MadeBucket()
    made.add(5, [Row(key, "old", key) for key in range(4)])
    bucket, keys = made.bucket(), pa.table({"_KEY_k": pa.array([1, 3, 9], pa.int32())})
    (hit,) = find_rows(made.storage, bucket, bucket.files, keys)
    assert (hit.wanted.tolist(), hit.positions.tolist()) == ([0, 1], [1, 3])

    def found(*sequences: int) -> list[str]:
        numbers = pa.chunked_array([np.array(sequences)])
        newer = newer_below(made.storage, bucket, numbers, hit)
        return [] if newer is None else [str(newer)]

    assert found(7, 8, 9) == found(2, 4, 0) == []
    assert "1 keys of" in found(2, 3, 0)[0]
