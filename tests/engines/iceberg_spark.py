"""Requests -> a long-lived Spark with Iceberg 1.12.0 -> its answers. Nothing here reads a table."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.engines.iceberg_java import ICEBERG, SQLITE
from tests.engines.iceberg_tables import Table, Warehouse
from tests.engines.json_lines import JsonLines
from tests.engines.lake_rows import Rows
from tests.engines.toolchain import fetch_jar

_REPOSITORY = Path(__file__).parents[2]
# Tests run each plan once or twice: the second compiler would cost more than it saves.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class IcebergSpark:
    """One Spark session in a process of its own. A failure of Spark's is an EngineError with its condition.

    Catalogs are not cached: each statement sees the table as it is.
    """

    def __init__(
        self,
        *,
        memory: str = "2g",
        cores: int = 2,
        timeout: float = 180.0,
        java_options: str = _SHORT_LIVED,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="nightkeep-iceberg-spark-", ignore_cleanup_errors=True)
        options = {
            "jars": [str(fetch_jar(ICEBERG)), str(fetch_jar(SQLITE))],
            "scratch": self._scratch.name,
            "memory": memory,
            "cores": cores,
            "java_options": java_options,
            "conf": dict(conf or {}),
        }
        command = [sys.executable, "-m", "tests.engines.iceberg_spark_server", json.dumps(options)]
        self._lines = JsonLines(command, Path(self._scratch.name) / "log", timeout=timeout, env=self._environment())
        self._attached: dict[str, Warehouse] = {}

    def _environment(self) -> dict[str, str]:
        """Nothing of another Spark in the calling environment; its clock in UTC, its addresses on this machine."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        own = {"PYTHONPATH": str(_REPOSITORY), "TMPDIR": self._scratch.name, "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
        return {**others, **own, "PYSPARK_PYTHON": sys.executable}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._lines.stop()
        self._scratch.cleanup()

    @property
    def pid(self) -> int:
        return self._lines.pid

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
