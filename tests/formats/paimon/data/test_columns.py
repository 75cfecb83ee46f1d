"""What a data file's bytes may not silently become."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, Schemas
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.model import UnitKey
from nightkeep.storage import LocalStorage

SCHEMA = PaimonSchema(
    0,
    (PaimonField(0, "id", parse_type("INT NOT NULL")), PaimonField(1, "at", parse_type("TIMESTAMP(9)"))),
    (),
    ("id",),
    {},
)
BUCKET = Bucket(UnitKey("", 0), {}, b"", "bucket-0", 1, (), (), (), Schemas(SCHEMA, {0: SCHEMA}))


def reader(folder: Path, *times: datetime) -> PaimonFileReader:
    rows = pa.table({"id": pa.array(range(len(times)), pa.int32()), "at": pa.array(times, pa.timestamp("us"))})
    (folder / "bucket-0").mkdir()
    pq.write_table(rows, folder / "bucket-0" / "f.parquet", use_deprecated_int96_timestamps=True)
    file = PaimonDataFile("f.parquet", 0, len(times), 0, (0,), (0,), 0, 0, 0, 0, 0, {})
    return PaimonFileReader(LocalStorage(str(folder)), BUCKET, file)


def test_times_arrow_can_hold_are_read_as_they_are(tmp_path: Path) -> None:
    found = reader(tmp_path, datetime(2026, 1, 1), datetime(1700, 5, 6)).read(["at"]).column("at")

    assert found.type == pa.timestamp("ns")
    assert found.cast(pa.timestamp("us")).to_pylist() == [datetime(2026, 1, 1), datetime(1700, 5, 6)]


@pytest.mark.parametrize("year", [9999, 1, 2263])
def test_a_time_that_would_wrap_around_in_nanoseconds_is_refused_by_name(tmp_path: Path, year: int) -> None:
    opened = reader(tmp_path, datetime(2026, 1, 1), datetime(year, 12, 31, tzinfo=UTC).replace(tzinfo=None))

    with pytest.raises(RefusedTable, match=r"column at.*outside the years 1678 to 2261"):
        list(opened.batches(["id", "at"], [0]))


def test_a_time_that_a_finer_type_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    coarse = PaimonSchema(0, (SCHEMA.fields[0], PaimonField(1, "at", parse_type("TIMESTAMP(6)"))), (), ("id",), {})
    bucket = replace(BUCKET, schemas=Schemas(SCHEMA, {0: coarse}))
    rows = pa.table({"id": pa.array([0], pa.int32()), "at": pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))})
    (tmp_path / "bucket-0").mkdir()
    pq.write_table(rows, tmp_path / "bucket-0" / "f.parquet")
    file = PaimonDataFile("f.parquet", 0, 1, 0, (0,), (0,), 0, 0, 0, 0, 0, {})

    with pytest.raises(RefusedTable, match=r"column at.*outside the years 1678 to 2261"):
        PaimonFileReader(LocalStorage(str(tmp_path)), bucket, file).read(["at"])
