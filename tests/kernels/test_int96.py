"""INT96 times of both writers: Arrow's nanoseconds of the day are never negative, Java's are before 1970."""

import struct
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightkeep.encodings.open_parquet import open_parquet
from nightkeep.encodings.parquet_footer import footer_bytes, read_footer
from nightkeep.kernels.int96 import micros, times

MIDNIGHT_1970 = 2_440_588
DAY_NANOS = 86_400 * 10**9


def stored(*values: tuple[int, int] | None) -> pa.ChunkedArray:
    """(nanoseconds of the day, Julian day) -> what an opened file gives of them."""
    packed = [None if value is None else struct.pack("<qi", *value) for value in values]
    return pa.chunked_array([pa.array(packed, pa.binary(12))])


def java(nanos: int) -> tuple[int, int]:
    """timestampToInt96 of ParquetRowDataWriter: Java's division rounds towards zero."""
    day = abs(nanos) // DAY_NANOS * (1 if nanos >= 0 else -1)
    return nanos - day * DAY_NANOS, day + MIDNIGHT_1970


@pytest.mark.parametrize("nanos", [0, 1, -1, -DAY_NANOS, 1 - DAY_NANOS, 2**63 - 2001, -(2**63) + 4001])
def test_times_are_exact_on_both_sides_of_1970(nanos: int) -> None:
    found = times(stored(java(nanos), None))

    assert found is not None
    assert found.cast(pa.int64()).to_pylist() == [nanos, None]


def test_a_slice_reads_its_own_values() -> None:
    found = times(stored((1, MIDNIGHT_1970), (2, MIDNIGHT_1970), (3, MIDNIGHT_1970)).slice(1, 1))

    assert found is not None and found.cast(pa.int64()).to_pylist() == [2]


@pytest.mark.parametrize("year", [1, 1600, 1676, 2263, 2400, 2554, 9999])
def test_a_year_that_nanoseconds_cannot_hold_is_no_time(year: int) -> None:
    seconds = int(datetime(year, 6, 1, 12, tzinfo=UTC).timestamp())

    assert times(stored(java(seconds * 10**9), java(0))) is None


def test_a_file_reads_as_arrow_reads_it_where_arrow_can(tmp_path: Path) -> None:
    path = str(tmp_path / "times.parquet")
    rows = pa.table(
        {
            "id": pa.array(range(1000), pa.int32()),
            "at": pa.array([None if n % 7 == 0 else n * 10**15 + n for n in range(1000)], pa.timestamp("ns")),
            "flag": pa.array([n % 2 == 0 for n in range(1000)]),
        }
    )
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, row_group_size=300)

    opened, names = open_parquet(pa.OSFile(path))

    assert names == {"at"}
    found = times(opened.read(columns=["at"]).column("at"))
    assert found is not None and found.equals(pq.read_table(path).column("at").cast(pa.timestamp("ns")))
    assert opened.read(columns=["id", "flag"]).equals(rows.select(["id", "flag"]))


@pytest.mark.parametrize("columns", [1, 20, 200])
def test_a_footer_is_written_as_it_was_read(tmp_path: Path, columns: int) -> None:
    path = tmp_path / "wide.parquet"
    rows = pa.table({f"column {n}": pa.array([n, None, -n], pa.int64()) for n in range(columns)})
    pq.write_table(rows, path, row_group_size=1)

    assert path.read_bytes().endswith(footer_bytes(read_footer(pa.OSFile(str(path)))))


@pytest.mark.parametrize("year", [1, 1600, 1676, 1969, 1970, 2263, 2554, 9999])
@pytest.mark.parametrize("micro", [0, 1, 999_999])
def test_microseconds_are_exact_in_any_year_with_either_sign_of_nanoseconds(year: int, micro: int) -> None:
    seconds = int(datetime(year, 6, 1, 23, 59, 59, tzinfo=UTC).timestamp())
    expected = seconds * 10**6 + micro
    day, nanos = divmod(expected * 1000, DAY_NANOS)

    found = micros(stored(java(expected * 1000), (nanos, day + MIDNIGHT_1970), None).chunk(0).slice(0, 3))

    assert found.type == pa.timestamp("us")
    assert found.cast(pa.int64()).to_pylist() == [expected, expected, None]


def test_digits_below_a_microsecond_are_cut_towards_midnight() -> None:
    pieces = stored((1999, MIDNIGHT_1970), (-1999, MIDNIGHT_1970), (-1000, MIDNIGHT_1970)).chunk(0)

    assert micros(pieces).cast(pa.int64()).to_pylist() == [1, -1, -1]
    assert micros(pieces.slice(1)).cast(pa.int64()).to_pylist() == [-1, -1]
    assert micros(pieces.slice(3)).to_pylist() == []
