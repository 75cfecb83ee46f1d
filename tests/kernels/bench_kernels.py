"""Rows per second of each kernel, on one thread: PYTHONPATH=jobs python -m tests.kernels.bench_kernels."""

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.bitmap import Width, from_positions, mask, positions
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.kernels.lookup import find_keys
from nightkeep.kernels.merge import Direction, OrderBy, keep_latest
from nightkeep.kernels.stats import column_stats, contains

HELD, WANTED, MERGED = 10_000_000, 250_000, 1_000_000


def measure(label: str, rows: int, kernel: Callable[[], object]) -> None:
    """Best of three."""
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        kernel()
        seconds.append(time.perf_counter() - begun)
    print(f"{label:46} {min(seconds) * 1000:9.1f} ms {rows / min(seconds) / 1e6:8.1f} M rows/s")


def texts(numbers: np.ndarray, prefix: str = "user-") -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 12, "0"), "")


def key_tables(numbers: np.ndarray) -> dict[str, pa.Table]:
    tenants = pa.array(numbers // 1_000_000_000, pa.int32())
    return {
        "int64": pa.table({"k": numbers}),
        "string of 17 bytes": pa.table({"k": texts(numbers)}),
        "int32, int64": pa.table({"t": tenants, "k": numbers}),
        "int32, string": pa.table({"t": tenants, "k": texts(numbers)}),
        "string, int64": pa.table({"k": texts(numbers), "n": numbers % 7}),
    }


def lookups(pick: np.random.Generator) -> None:
    rows = pa.array(np.sort(pick.choice(HELD, WANTED, replace=False)))
    for label, held in key_tables(np.cumsum(pick.integers(1, 1000, HELD))).items():
        wanted = held.take(rows).combine_chunks()
        measure(f"find_keys {label}", HELD, lambda wanted=wanted, held=held: find_keys(wanted, held))


def merges(pick: np.random.Generator) -> None:
    runs = np.concatenate([np.sort(pick.choice(2 * MERGED, MERGED // 5, replace=False)) for _ in range(5)])
    for label, rows in key_tables(runs * 500).items():
        keys = rows.column_names
        timed = rows.append_column("s", pa.array(np.arange(MERGED)))
        for way in Direction:
            order = [OrderBy("s", way)]
            label_way = f"keep_latest 5 runs {label}, {way.value}"
            measure(
                label_way, MERGED, lambda rows=timed, keys=keys, order=order: keep_latest(rows, keys=keys, order=order)
            )


def bitmaps(pick: np.random.Generator) -> None:
    chosen = np.sort(pick.choice(HELD, HELD // 5, replace=False))
    for width in Width:
        bitmap = from_positions(chosen, width)
        measure(f"from_positions {width.value}", len(chosen), lambda width=width: from_positions(chosen, width))
        measure(f"positions {width.value}", len(chosen), lambda bitmap=bitmap: positions(bitmap))
        measure(f"mask {width.value}", HELD, lambda bitmap=bitmap: mask(bitmap, HELD))


def columns(pick: np.random.Generator) -> None:
    table = pa.table(
        {
            "id": np.arange(MERGED),
            "kind": pick.integers(0, 100, MERGED).astype(np.int32),
            "price": pick.random(MERGED),
            "at": pa.array(np.arange(MERGED), pa.timestamp("us")),
            "user": texts(pick.integers(0, 9999, MERGED), ""),
            "note": [None if i % 10 == 0 else "x" * (i % 13) for i in range(MERGED)],
        }
    )
    measure("fingerprint 6 columns", MERGED, lambda: fingerprint(table))
    for name in table.column_names:
        column = table.column(name)
        stats = column_stats(column)
        measure(f"column_stats {column.type}", MERGED, lambda column=column: column_stats(column))
        measure(f"contains {column.type}", MERGED, lambda stats=stats, column=column: contains(stats, column))


if __name__ == "__main__":
    pa.set_cpu_count(1)
    for bench in (lookups, merges, bitmaps, columns):
        bench(np.random.default_rng(1))
