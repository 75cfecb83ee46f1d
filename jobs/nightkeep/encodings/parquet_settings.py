"""Settings of new Parquet files, for all table formats: codecs, and options of pyarrow's writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

CODECS: Final = {name: name for name in ("none", "snappy", "gzip", "zstd", "brotli")} | {
    "uncompressed": "none",
    "lz4_raw": "lz4",
}
"""Arrow's name of each codec. Arrow has no codec for Hadoop's framed lz4."""
WriterOptions: TypeAlias = Mapping[str, Any]
"""Options of pyarrow's ParquetWriter, by its names. Its stubs know some of them only."""
SETTINGS: Final[WriterOptions] = {
    "store_schema": False,
    "store_decimal_as_integer": True,
    # Without checksums a flipped bit reads as another row. 8 M rows of six columns take 1.04 s of CPU instead of 0.96.
    "write_page_checksum": True,
    "version": "2.6",
}
"""What all new files have in common."""
PAGE_ROWS: Final = 20_000
"""Rows of a page at most, as parquet-java has it: what a reader of the page index skips at once."""
DATA_SETTINGS: Final[WriterOptions] = {**SETTINGS, "write_page_index": True, "max_rows_per_page": PAGE_ROWS}
"""What new data files have in common. Spark and DataFusion skip pages by the index, which parquet-java writes too.
Columns without statistics have no bounds in it. 8 M rows of six columns take 0.69 s of CPU instead of 0.67, and 0.02 %
more bytes.
"""
