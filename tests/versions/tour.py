"""A tour over the sample tables, by the interpreter of another environment: every operation, each row compared.

Run as `python tour.py WAREHOUSE`, in the environment of `samples.working_copy`. It prints a line per step and ends with
status 1 where an outcome or a row is another one. It imports Nightkeep, and nothing of the tests.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

import pyspark

import nightkeep

HAS_DATA_SOURCE: Final = int(pyspark.__version__.split(".")[0]) >= 4

REWRITES: Final = (
    ("shop.orders", "upgrade", {}),
    ("shop.prices", "optimize", {}),
    ("lake.clicks", "optimize", {"zorder": "user_id,at"}),
    ("lake.readings", "optimize", {"hilbert": "device_id,ts"}),
    ("stream.orders", "persist-deletes", {}),
    ("stream.orders", "optimize", {}),
)
"""A table, an operation that keeps its rows, and options."""


def rows(table: str) -> Counter[str]:
    """The rows of the latest version, as often as each is there."""
    view = "merge-on-read" if table == "shop.orders" else None
    return Counter(map(repr, nightkeep.read(table, view=view).read_all().to_pylist()))


def main() -> int:
    faults = list[str]()

    def step(what: str, *, good: bool, found: object) -> None:
        print(f"{'ok ' if good else 'BAD'} {what}: {found}", flush=True)
        if not good:
            faults.append(what)

    for table, operation, options in REWRITES:
        before = rows(table)
        documents = nightkeep.run(table, operation=[operation], **options)
        for document in documents:
            step(
                f"{operation} of {table}",
                good=document.outcome == "verified",
                found=f"{document.outcome} {document.reason or ''}",
            )
        step(f"rows of {table} after {operation}", good=rows(table) == before, found=f"{sum(before.values())} before")
    before = rows("lake.clicks")
    gone = nightkeep.delete("lake.clicks", rows_where="user_id = 7")
    step("delete from lake.clicks", good=gone.outcome == "verified", found=gone.outcome)
    kept = Counter({row: count for row, count in before.items() if "'user_id': 7," not in row})
    step(
        "rows of lake.clicks after delete",
        good=rows("lake.clicks") == kept,
        found=f"{sum(kept.values())} of {sum(before.values())}",
    )
    checked = nightkeep.check("shop.orders")
    step("check of shop.orders", good=checked.status == "passed", found=checked.status)
    swept = nightkeep.sweep("lake.clicks", quarantine=True)
    step("sweep of lake.clicks", good=swept.outcome in {"verified", "unchanged"}, found=swept.outcome)
    if HAS_DATA_SOURCE:
        step(
            "the data source",
            good=read_by_spark("lake.readings") == sum(rows("lake.readings").values()),
            found="rows counted",
        )
    else:
        try:
            step("the data source", good=False, found=nightkeep.DataSource)
        except nightkeep.errors.UsageError as failure:
            step("the data source", good="pyspark 4 or later" in str(failure), found=failure)
    return 1 if faults else 0


def read_by_spark(table: str) -> int:
    """How many rows Spark's reader of the data source `nightkeep` shows."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- a session only where it is needed

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(nightkeep.DataSource)
    try:
        return spark.read.format("nightkeep").load(table).count()
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
