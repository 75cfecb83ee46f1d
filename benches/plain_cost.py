"""What pyarrow alone takes to decode and encode a table's files on as many threads: the limit of any rewrite."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class PlainCost:
    """Seconds of the clock for both steps on all cores, and CPU seconds of the decoding."""

    decode: float
    encode: float
    decode_cpu: float

    def __str__(self) -> str:
        return f"pyarrow decodes in {self.decode:.2f} s and encodes in {self.encode:.2f} s"

    def of_rewrite(self, seconds: float) -> str:
        """How many times as long a rewrite takes."""
        return f"{seconds / (self.decode + self.encode):.2f} x a plain decode and encode ({self})"

    def of_gate(self, cpu_seconds: float, other: PlainCost) -> str:
        """How many times the CPU of a plain decode a proof takes, per side: `other` is the other side."""
        return f"{cpu_seconds / (self.decode_cpu + other.decode_cpu):.2f} x the CPU of a plain decode of both sides"


def files_with(folder: Path, columns: Sequence[str]) -> list[Path]:
    """The Parquet files below a folder that hold all these columns: data files, and no delete files."""
    parquet = (path for path in sorted(folder.rglob("*.parquet")) if _is_parquet(path))
    return [path for path in parquet if set(columns) <= set(pq.read_schema(path).names)]


def _is_parquet(path: Path) -> bool:
    # Iceberg Java also gives Puffin files of vectors this ending.
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def plain_cost(files: Sequence[Path], *, columns: Sequence[str], cores: int = 2) -> PlainCost:
    """Decode `columns` of Parquet files, a file per thread at a time, then encode them with zstd, level 1."""
    started, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(cores) as threads:
        rows = sum(threads.map(lambda file: _decode(file, columns), files))
    decode, decode_cpu = time.perf_counter() - started, time.process_time() - cpu
    held = max(files, key=lambda file: file.stat().st_size)
    table = pq.read_table(held, columns=list(columns), use_threads=False)
    started = time.perf_counter()
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(_encode, [table] * cores))
    # Every thread encoded the rows of the largest file.
    encode = (time.perf_counter() - started) * rows / (cores * table.num_rows)
    return PlainCost(decode, encode, decode_cpu)


def _decode(file: Path, columns: Sequence[str]) -> int:
    batches = pq.ParquetFile(file).iter_batches(BATCH_ROWS, columns=list(columns), use_threads=False)
    return sum(batch.num_rows for batch in batches)


def _encode(table: pa.Table) -> None:
    pq.write_table(table, pa.BufferOutputStream(), compression="zstd", compression_level=1)
