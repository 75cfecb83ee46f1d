"""Requests -> a long-lived Spark with Iceberg 1.12.0 -> its answers. Nothing here reads a table."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.drivers.iceberg_java import ICEBERG, SQLITE
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.json_lines import Engine
from tests.drivers.lake_rows import Rows
from tests.drivers.toolchain import SHORT_LIVED, fetch_jar, spark_environment


class IcebergSpark(Engine):
    """One Spark session in a process of its own. A failure of Spark's is an EngineError with its condition.

    Catalogs are not cached: each statement sees the table as it is.
    """

    def __init__(
        self,
        *,
        memory: str = "2g",
        cores: int = 2,
        timeout: float = 180.0,
        java_options: str = " ".join(SHORT_LIVED),
        conf: Mapping[str, str] | None = None,
    ) -> None:
        scratch = self._folder("nightkeep-iceberg-spark-")
        options = {
            "jars": [str(fetch_jar(ICEBERG)), str(fetch_jar(SQLITE))],
            "scratch": scratch,
            "memory": memory,
            "cores": cores,
            "java_options": java_options,
            "conf": dict(conf or {}),
        }
        command = [sys.executable, "-m", "tests.drivers.iceberg_spark_server", json.dumps(options)]
        self._start(command, timeout=timeout, env=spark_environment(scratch))
        self._attached: dict[str, Warehouse] = {}

    def attach(self, warehouse: Warehouse) -> None:
        """Makes the catalog known by its name, for sql; read does it itself."""
        known = self._attached.get(warehouse.name)
        if known not in (None, warehouse):
            raise ValueError(f"catalog {warehouse.name}: expected {known}, found {warehouse}")
        if known is None:
            self.set(warehouse.spark())
            self._attached[warehouse.name] = warehouse

    def sql(self, *statements: str, timeout: float | None = None) -> Rows:
        """Runs the statements in order; the rows of the last, in the engine's order. Tables are named by Table.sql,
        procedures called as f"CALL {warehouse.name}.system.rewrite_data_files(table => '{table.name}')"."""
        return Rows.of(self._lines.request("sql", {"statements": statements}, timeout=timeout))

    def read(
        self,
        table: Table,
        *,
        snapshot: int | None = None,
        ref: str | None = None,
        where: str | None = None,
        columns: Sequence[str] = ("*",),
    ) -> Rows:
        """Rows in the order of their JSON; of a snapshot, with its own schema. `columns` are expressions, such as
        "_row_id" or "_file"."""
        self.attach(table.warehouse)
        version = snapshot if ref is None else ref
        options = {} if version is None else {"versionAsOf": str(version)}
        fields = {"table": table.sql, "options": options, "where": where, "columns": list(columns)}
        return Rows.of(self._lines.request("read", fields)).ordered()

    def inspect(self, table: Table, view: str) -> Rows:
        """A metadata table: files, all_files, entries, manifests, snapshots, refs, history, position_deletes..."""
        self.attach(table.warehouse)
        return self.sql(f"SELECT * FROM {table.sql}.{view}")

    def planned(self, query: str) -> list[list[Any]]:
        """Name and expected distinct values of each column of the tables of a query that has them, by the optimizer."""
        found: list[list[Any]] = self._lines.request("planned", {"query": query})
        return found

    def stream(self, table: Table, sink: Path, *, options: Mapping[str, str] | None = None) -> Rows:
        """Reads the table as a stream up to its newest snapshot, on from where the sink got to before; what is in the
        sink then, in any order. `options` are the stream's."""
        self.attach(table.warehouse)
        fields = {"table": table.sql, "sink": str(sink), "options": dict(options or {})}
        return Rows.of(self._lines.request("stream", fields))

    def set(self, conf: Mapping[str, str | None]) -> dict[str, str | None]:
        """Session settings; None unsets. Returns the values before."""
        before: dict[str, str | None] = self._lines.request("set", {"conf": dict(conf)})
        return before

    @contextlib.contextmanager
    def configured(self, conf: Mapping[str, str | None]) -> Iterator[None]:
        before = self.set(conf)
        try:
            yield
        finally:
            self.set(before)
