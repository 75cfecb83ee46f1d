"""Which row of each key is written, against a dict of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.paimon.contents import SAMPLES, opened

from nightkeep.formats.paimon.data.columns import KIND, RETRACT_KINDS, SEQUENCE, key_columns
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite.winners import numbered, oldest_first, winners

# Key, sequence number, kind.
ROWS = [(1, 1, 0), (1, 4, 2), (2, 2, 0), (2, 3, 3), (3, 5, 1), (4, 7, 3), (4, 6, 0)]


@pytest.fixture
def bucket() -> Bucket:
    return next(unit for unit in opened(Path(SAMPLES / "prices")).snapshot().units if len(unit.files) > 1)


@pytest.mark.parametrize("drops", [False, True])
def test_the_newest_row_of_each_key(bucket: Bucket, drops: bool) -> None:
    first, second = key_columns(bucket)
    rows = pa.table(
        {
            first: pa.array([key for key, _, _ in ROWS], pa.int32()),
            second: ["EUR"] * len(ROWS),
            SEQUENCE: pa.array([number for _, number, _ in ROWS], pa.int64()),
            KIND: pa.array([kind for _, _, kind in ROWS], pa.int8()),
        }
    )
    newest: dict[int, tuple[int, int]] = {}
    for place, (key, number, _) in enumerate(ROWS):
        newest[key] = max(newest.get(key, (-1, -1)), (number, place))
    expected = [place for _, place in newest.values() if not drops or ROWS[place][2] not in RETRACT_KINDS]
    assert winners(rows, bucket, drops_retracts=drops).tolist() == expected


def test_files_in_order(bucket: Bucket) -> None:
    merged = bucket.files[1:2]
    assert [file.name for file in numbered(bucket, merged)] == [
        merged[0].name,
        *(file.name for file in bucket.files if file.name != merged[0].name),
    ]
    taken = oldest_first(bucket.files)
    assert {file.name for file in taken} == {file.name for file in bucket.files}
    assert taken[0].level == max(file.level for file in bucket.files), "the lowest run has the oldest rows"
