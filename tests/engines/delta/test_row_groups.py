"""What engines read inside of clustered files: no row group and no page that statistics exclude.

Row groups that a query does not need are overwritten with zeros: an engine that opens one of them fails.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.lake import Lake, request

from nightkeep.encodings.parquet_settings import PAGE_ROWS
from nightkeep.model import Clustering, Curve

ROWS = 60_000
TARGET = 512 << 10
SCHEMA = pa.schema(
    [("id", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("text", pa.string()), ("f", pa.float64())]
)
# Each column of the curve has its range: a seventh of the values.
LOW, HIGH = ROWS // 2, ROWS // 2 + ROWS // 7
# What vectored reads read, no counter of Hadoop's has.
COUNTED = {"parquet.hadoop.vectored.io.enabled": "false"}


def rows_of(count: int) -> pa.Table:
    random = np.random.default_rng(7)
    a, b = random.permutation(count), random.permutation(count)
    texts = [f"text {n % 1000}" for n in a]
    return pa.table([np.arange(count), a, b, pa.array(texts), random.random(count)], schema=SCHEMA)


@pytest.fixture
def clustered(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "t", SCHEMA)
    lake.append(rows_of(ROWS), files=3)
    lake.run(request(clustering=Clustering(("a", "b"), Curve.HILBERT), target_bytes=TARGET))
    return lake


def spans(path: Path, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Of each row group: where it starts and ends in the file, and the bounds of a column."""
    footer = pq.read_metadata(path)
    place = footer.schema.names.index(name)
    for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
        chunks = [group.column(at) for at in range(footer.num_columns)]
        starts = [min(filter(None, (each.dictionary_page_offset, each.data_page_offset))) for each in chunks]
        ends = [start + each.total_compressed_size for start, each in zip(starts, chunks, strict=True)]
        bounds = group.column(place).statistics
        yield min(starts), max(ends), bounds.min, bounds.max


def test_a_clustered_file_has_row_groups_and_an_index_of_its_pages(clustered: Lake) -> None:
    full = [file for file in clustered.files if file.bytes > TARGET / 2]
    assert len(full) > 1
    for file in full:
        footer = pq.read_metadata(clustered.folder / file.path)
        # Sixteen are of a file that has the size that was asked for.
        assert 12 <= footer.num_row_groups * TARGET / file.bytes <= 20, file.bytes
        group = footer.row_group(0)
        indexed = [group.column(at).has_column_index for at in range(len(SCHEMA))]
        # Arrow leaves NaN out of bounds, so that there are none of floating columns.
        assert indexed == [True, True, True, True, False]
        assert all(group.column(at).has_offset_index for at in range(len(SCHEMA)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a", "b"])
def test_engines_open_only_row_groups_that_may_hold_a_value(
    clustered: Lake, name: str, delta_spark: DeltaSpark, lakes: Lakes
) -> None:
    """Each of Spark, delta-rs and DuckDB finds the rows, though most of the table is zeros."""
    where = f"{name} BETWEEN {LOW} AND {HIGH}"
    held = rows_of(ROWS)
    expected = {
        n for n, value in zip(held["id"].to_pylist(), held[name].to_pylist(), strict=True) if LOW <= value <= HIGH
    }
    zeroed = kept = 0
    for file in clustered.files:
        path = clustered.folder / file.path
        content = bytearray(path.read_bytes())
        for start, end, low, high in spans(path, name):
            if low > HIGH or high < LOW:
                content[start:end] = bytes(end - start)
                zeroed += end - start
            else:
                kept += end - start
        path.write_bytes(content)
    # A seventh of the values are in less than half of the row groups.
    assert kept < zeroed
    readers: tuple[Callable[..., Any], ...] = (delta_spark.read, lakes.delta_rs_read, lakes.duckdb_read)
    for read in readers:
        assert set(read(clustered.folder, where=where, columns=("id",)).column("id")) == expected
        with pytest.raises(EngineError):
            read(clustered.folder, columns=("sum(id + a + b + length(text))",))


@pytest.mark.slow
def test_spark_skips_pages_inside_a_row_group(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """One row group of eight pages: a range of 1 % of its rows reads few of them, and all without the index."""
    lake = Lake(tmp_path / "t", SCHEMA)
    lake.append(rows_of(8 * PAGE_ROWS))
    lake.run(request(clustering=Clustering(("a",), Curve.HILBERT)))
    (file,) = lake.files
    assert pq.read_metadata(lake.folder / file.path).num_row_groups == 1
    where = [f"a BETWEEN {LOW} AND {LOW + 8 * PAGE_ROWS // 100}"]
    with delta_spark.configured(COUNTED):
        (by_index,) = delta_spark.bytes_read(lake.folder, where)
        with delta_spark.configured({"parquet.filter.columnindex.enabled": "false"}):
            (whole,) = delta_spark.bytes_read(lake.folder, where)
    assert by_index < 0.4 * file.bytes < 0.9 * file.bytes < whole
