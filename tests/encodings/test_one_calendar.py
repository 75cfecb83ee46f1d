"""Files with Spark's marks of the old calendar in tables whose engines do not heed them: refused where values move."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest

from nightkeep.encodings.legacy_calendar import LegacyCalendar, require_one_calendar
from nightkeep.errors import RefusedTable

OLD = LegacyCalendar("f.parquet", datetime=True, int96=True, zone="UTC")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([date(1500, 3, 1), None]),
        pa.array([datetime(1880, 1, 1)], pa.timestamp("us")),
        pa.array([datetime(1880, 1, 1)], pa.timestamp("ms", "UTC")),
        pa.array([[date(2024, 1, 1)]], pa.list_(pa.date32())),
        pa.array(
            [[("a", {"at": datetime(2024, 1, 1)})]], pa.map_(pa.string(), pa.struct([("at", pa.timestamp("us"))]))
        ),
    ],
)
def test_what_spark_would_move_is_refused(column: pa.Array) -> None:
    with pytest.raises(RefusedTable, match="column c: days or times of the Julian calendar"):
        require_one_calendar(OLD, column, "c")
    require_one_calendar(None, column, "c")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([date(1582, 10, 15), None]),
        pa.array([None], pa.date32()),
        pa.array([datetime(2024, 1, 1)], pa.timestamp("us")),
        pa.array([], pa.timestamp("us")),
        pa.array([1, 2]),
        pa.array([["a"]]),
        pa.array([{"timestamp": 1}], pa.struct([("timestamp", pa.int64())])),
    ],
)
def test_other_values_are_read(column: pa.Array) -> None:
    require_one_calendar(OLD, column, "c")
