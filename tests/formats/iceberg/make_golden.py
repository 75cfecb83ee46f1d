"""Runs recipes of golden_tables with Iceberg's engines and keeps the bytes they wrote, with what Java reads in them.

Run from the repository: python -m tests.formats.iceberg.make_golden [NAME ...]; without names, all.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.golden_tables import GOLDEN, KEPT, RECIPES, WRITTEN_IN


def main(names: Sequence[str]) -> None:
    with ExitStack() as stack:
        java = stack.enter_context(IcebergJava())
        spark = cache(lambda: stack.enter_context(IcebergSpark()))
        for name in names:
            # A number counts up with each table of a name: begin each in a folder of its own.
            shutil.rmtree(WRITTEN_IN, ignore_errors=True)
            table = Warehouse(f"golden_{name}", WRITTEN_IN).table(f"db.{name}")
            RECIPES[name](table, java, spark)
            keep(table, java, GOLDEN / name)
        shutil.rmtree(WRITTEN_IN)


def keep(table: Table, java: IcebergJava, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(table.metadata.parents[1], folder / "table", ignore=shutil.ignore_patterns(".*.crc"))
    rows = java.read(table)
    found = {"columns": rows.columns, "types": rows.types, "rows": rows.rows}
    for name, content in (("rows", found), ("entries", java.entries(table)), ("manifests", java.manifests(table))):
        (folder / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or KEPT)
