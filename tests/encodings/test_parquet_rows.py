"""Batches of Parquet files: all rows whatever the size of a batch, and what Arrow cannot read by its name."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightkeep.encodings import parquet_rows
from nightkeep.encodings.parquet_rows import ParquetRows
from nightkeep.errors import RefusedTable
from nightkeep.storage import LocalStorage

ROWS = 1000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [{"x": n, "s": [str(n)] * (n % 3)} for n in range(ROWS)]
    table = pa.table({"a": pa.array(range(ROWS), pa.int32()), "b": pa.array(rows)})
    pq.write_table(table, tmp_path / "f.parquet", compression="none", row_group_size=400, use_dictionary=False)
    return tmp_path / "f.parquet"


def opened(file: Path) -> ParquetRows:
    return ParquetRows(LocalStorage(str(file.parent)).open(file.name), subject="f")


@pytest.mark.parametrize("done", [0, 1, 16, 17, 399, 400])
@pytest.mark.parametrize("batch_rows", [1, 16, 400])
def test_reading_goes_on_after_any_row_with_batches_of_any_size(file: Path, done: int, batch_rows: int) -> None:
    """What is read again in smaller batches after a limit of Arrow, or by Arrow after another decoder."""
    found = list(parquet_rows._rest(opened(file)._by_arrow(1, (0, 1, 2), batch_rows), done))
    rows = [n for batch in found for n in batch.column(0).to_pylist()]
    assert rows == list(range(400 + done, 800))
    assert [row["x"] for batch in found for row in batch.column(1).to_pylist()] == rows


def test_a_codec_that_arrow_lacks_is_no_corruption(file: Path) -> None:
    """LZO, in the footer of a sound file."""
    data = file.read_bytes()
    # ColumnMetaData: path_in_schema, a list of one text; then the codec, an i32 in zigzag.
    uncompressed, lzo = (b"\x19\x18\x01a\x15" + bytes([2 * codec]) for codec in (0, 3))
    assert uncompressed in data
    file.write_bytes(data.replace(uncompressed, lzo))
    with pytest.raises(RefusedTable, match=r"f: a file beyond what Arrow reads: .*LZO"):
        list(opened(file).batches((0,)))
