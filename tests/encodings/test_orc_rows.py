"""Stripes of ORC files, and what their bytes may not silently become."""

from datetime import datetime
from random import Random

import pyarrow as pa
import pytest
from pyarrow import orc

from nightkeep.encodings.orc_footer import OrcKind
from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.errors import CorruptMetadata, NightkeepError, RefusedTable

ROWS = pa.table(
    {
        "n": pa.array(range(1000), pa.int32()),
        "text": pa.array([f"{n} rows" for n in range(1000)]),
        "at": pa.array(
            [datetime(1969, 12, 31, 23, 59, 59), datetime(2026, 1, 1, 1, 2, 3, 456)] * 500, pa.timestamp("us")
        ),
    }
)


def stored(rows: pa.Table, *, compression: str = "zstd", batch_rows: int = 100) -> bytes:
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(sink, compression=compression, stripe_size=1, batch_size=batch_rows) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())


def opened(data: bytes) -> OrcRows:
    return OrcRows(pa.BufferReader(data), subject="f.orc")


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_rows_come_by_stripe_and_column_in_the_order_of_the_file(compression: str) -> None:
    rows = opened(stored(ROWS, compression=compression))

    assert rows.names == ("n", "text", "at")
    assert [kind for _, kind in rows.footer.columns] == [OrcKind.INT, OrcKind.STRING, OrcKind.TIMESTAMP]
    assert rows.starts[0] == 0 and rows.starts[-1] == 1000
    every = range(len(rows.starts) - 1)
    assert rows.read(["text", "n"], every).equals(ROWS.select(["text", "n"]))
    assert rows.read(["at"], every).column("at").cast(pa.timestamp("us")).equals(ROWS.column("at"))
    assert rows.read([], every).num_rows == 1000
    assert rows.read(["n"], []).num_rows == 0


def test_stripes_are_read_alone_and_in_small_batches() -> None:
    rows = opened(stored(ROWS, compression="uncompressed"))

    assert len(rows.starts) > 3
    start, stop = rows.starts[1], rows.starts[3]
    batches = list(rows.batches(["n"], [1, 2], rows=30))
    assert max(batch.num_rows for batch in batches) == 30
    assert pa.Table.from_batches(batches).equals(ROWS.select(["n"]).slice(start, stop - start))


@pytest.mark.parametrize("year", [1, 1600, 2263, 9999])
def test_a_time_that_nanoseconds_cannot_hold_is_refused(year: int) -> None:
    rows = opened(stored(pa.table({"at": pa.array([datetime(year, 1, 1)], pa.timestamp("us"))})))

    with pytest.raises(RefusedTable, match=r"^f\.orc: times outside the years 1678 to 2261 in an ORC file"):
        rows.read(["at"], [0])


def test_a_name_that_is_a_path_to_another_column_is_refused() -> None:
    inner = pa.array([{"b": 1}], pa.struct([("b", pa.int32())]))
    rows = opened(stored(pa.table({"a.b": pa.array([2], pa.int32()), "a": inner})))

    with pytest.raises(RefusedTable, match="rename columns that have a dot"):
        rows.read(["a.b"], [0])


@pytest.mark.parametrize("data", [b"", b"ORC", b"PAR1" * 9, b"ORC" + bytes(300)])
def test_other_bytes_are_no_orc_file(data: bytes) -> None:
    with pytest.raises(CorruptMetadata, match=r"f\.orc: expected an ORC file"):
        opened(data)


def test_damaged_bytes_never_end_in_another_error() -> None:
    whole, dice = stored(ROWS), Random(7)
    for _ in range(300):
        data = bytearray(whole)
        # Mostly the end of the file: its footer.
        at = dice.randrange(len(data) - 300, len(data)) if dice.random() < 0.8 else dice.randrange(len(data))
        data[at] ^= 1 << dice.randrange(8)
        try:
            rows = opened(bytes(data))
            rows.read(list(rows.names), range(len(rows.starts) - 1))
        except NightkeepError:
            continue
