"""Sample tables of every format, run by us, then tampered with, and the documents of their check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from samples.working_copy import copy_tables, variables

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.groups.one_operation import check_and_store
from nightkeep.policy import EffectivePolicy, load
from nightkeep.records import Expectations, RunDocument
from nightkeep.spark.engine import Engine

Rows = pa.Table
NAMES = {"paimon": "shop.orders", "delta": "lake.clicks", "iceberg": "stream.orders"}


@dataclass(frozen=True)
class Published:
    """A table that was run without its check, and the files that the run wrote."""

    policy: EffectivePolicy
    document: RunDocument
    reports: Path
    files: tuple[Path, ...]

    def tamper(self, change: Callable[[Rows], Rows]) -> None:
        """Change one new file in place."""
        file = self.files[0]
        rows = pq.ParquetFile(file).read()
        pq.write_table(change(rows).cast(rows.schema), file, store_schema=False, store_decimal_as_integer=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def check(self, spark: SparkSession) -> RunDocument:
        engine = Engine(master="local[2]", task_memory_bytes=1 << 30, spark=spark)
        order = Order(self.document.operation, self.document.run_id, str(self.reports))
        # The run left its check out.
        unchecked = replace(self.document, expectations=Expectations())
        return check_and_store(unchecked, self.policy, order, engine).document


def policy_file(folder: Path, name: str, settings: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sample tables in `folder` and a policy of one of them with these settings, as lines of YAML."""
    warehouse = folder / "warehouse"
    if not warehouse.exists():
        copy_tables(warehouse)
    for variable, value in variables(folder).items():
        monkeypatch.setenv(variable, value)
    kind, _, rest = name.partition(".")
    addresses = {
        "shop": f"paimon:{warehouse}/paimon/shop.db/{rest}",
        "lake": f"delta:{warehouse}/delta/shop.db/{rest}",
        "stream": f"iceberg:lake/shop.{rest}",
    }
    lines = "".join(f"    {line}\n" for line in settings.splitlines())
    file = folder / "tables.yaml"
    file.write_text(f"version: 1\ntables:\n  - name: {name}\n    table: {addresses[kind]}\n{lines}", encoding="utf-8")
    return file


def published(
    folder: Path, name: str, settings: str, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> Published:
    file = policy_file(folder, name, settings, monkeypatch)
    before = set((folder / "warehouse").rglob("*.parquet"))
    operation = "upgrade" if name.startswith("shop.") else "optimize"
    runs = nightkeep.run(
        name, operation=operation, policy=file, reports=folder / "reports", no_check=True, full=True, spark=spark
    )
    (done,) = runs.documents
    assert done.committed_version is not None, done
    fresh = tuple(sorted(set((folder / "warehouse").rglob("*.parquet")) - before))
    return Published(load(file).effective(name), done, folder / "reports", fresh)


def first_text(value: str) -> Callable[[Rows], Rows]:
    """Put a value into the first text column that no key has, in the first row."""

    def change(rows: Rows) -> Rows:
        texts = (i for i, f in enumerate(rows.schema) if pa.types.is_string(f.type) or pa.types.is_large_string(f.type))
        place = [i for i in texts if not rows.schema[i].name.startswith("_")][-1]
        held = rows.column(place)
        is_first = pa.array([True] + [False] * (rows.num_rows - 1))
        return rows.set_column(place, rows.schema[place], pc.if_else(is_first, pa.scalar(value, held.type), held))

    return change


def everything(folder: Path) -> bytes:
    """The bytes of every file below a folder."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def files_with(folder: Path, text: str) -> set[str]:
    """The files below a folder that hold a text, by their names below it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in files if text.encode() in path.read_bytes()}
