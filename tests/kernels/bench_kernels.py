"""Rows per second of each kernel, on one thread: PYTHONPATH=jobs python -m tests.kernels.bench_kernels."""

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.bitmap import Width, from_positions, mask, positions
from nightkeep.kernels.curve import curve_keys, order_of
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.kernels.lookup import find_keys
from nightkeep.kernels.merge import Direction, OrderBy, keep_latest
from nightkeep.kernels.ranks import Sample, bounds_of, noise, rank_ids
from nightkeep.kernels.skipping import layout, overlap, queries_of, simulated_layout, skipped_share
from nightkeep.kernels.stats import column_stats, contains
from nightkeep.model import Curve

HELD, WANTED, MERGED = 10_000_000, 250_000, 1_000_000
LAID, SAMPLED, FILES = 8_000_000, 100_000, 10_000


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


def clusterings(pick: np.random.Generator) -> None:
    int64 = pick.integers(-(2**63), 2**63 - 1, LAID)
    laid = {
        "int64": pa.array(int64),
        "int32 of 200,000": pa.array(pick.integers(0, 200_000, LAID).astype(np.int32)),
        "double": pa.array(pick.normal(size=LAID)),
        "heavy-tailed double": pa.array(pick.pareto(0.5, LAID)),
        "timestamp": pa.array(pick.integers(0, 86_400_000_000, LAID), pa.timestamp("us")),
        "int64, a third null": pa.array(int64, mask=pick.random(LAID) < 1 / 3),
        "string of 17 bytes": texts(pick.integers(0, 10**12, LAID)),
    }
    sampled = pa.array(pick.integers(0, LAID, SAMPLED))
    for label, column in laid.items():
        sample = Sample(column.take(sampled), LAID)
        bounds = bounds_of([sample])
        measure(f"bounds_of {label}", SAMPLED, lambda sample=sample: bounds_of([sample]))
        measure(f"rank_ids {label}", LAID, lambda bounds=bounds, column=column: rank_ids(bounds, column))
    ids = [pick.integers(0, 1024, LAID).astype(np.uint32) for _ in range(4)]
    for count in range(1, 5):
        for curve in Curve:
            label = f"curve_keys {curve}, {count} columns"
            measure(label, LAID, lambda count=count, curve=curve: curve_keys(ids[:count], 10, curve))
    for bits in (10, 30, 60):
        keys = pick.integers(0, 2**bits, LAID, np.uint64)
        measure(f"order_of {bits} bits", LAID, lambda keys=keys: order_of(keys))
    measure("noise", LAID, lambda: noise(0, LAID))


def layouts(pick: np.random.Generator) -> None:
    sample = pa.table({"a": pick.random(SAMPLED), "b": pick.integers(0, 10**9, SAMPLED)})
    sample = sample.append_column("c", texts(pick.integers(0, 10**12, SAMPLED)))
    for curve in Curve:
        label = f"simulated_layout {curve}, 2 of 3 columns"
        measure(label, SAMPLED, lambda curve=curve: simulated_layout(sample, ["a", "c"], files=100, curve=curve))
    for name, files in layout(sample, np.arange(SAMPLED), files=FILES).items():
        queries = queries_of(files)
        label = f"of {FILES:,} files, {sample.schema.field(name).type}"
        measure(f"queries_of {label}", FILES, lambda files=files: queries_of(files))
        measure(f"skipped_share {label}", FILES, lambda files=files, queries=queries: skipped_share(files, queries))
        measure(f"overlap {label}", FILES, lambda files=files: overlap(files))


if __name__ == "__main__":
    pa.set_cpu_count(1)
    for bench in (lookups, merges, bitmaps, columns, clusterings, layouts):
        bench(np.random.default_rng(1))
