"""A REST catalog as a process: Iceberg's own handlers of the protocol over a SQLite catalog, on a loopback port."""

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.engines.iceberg_java import java_command
from tests.engines.iceberg_tables import Warehouse
from tests.engines.json_lines import JsonLines


class IcebergRest:
    """One JVM serving any number of catalogs, each on a port of its own."""

    def __init__(self, *, timeout: float = 60.0) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="nightkeep-iceberg-rest-")
        command = java_command("IcebergDriver", self._scratch.name, memory="512m")
        self._lines = JsonLines(command, Path(self._scratch.name) / "log", timeout=timeout)

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

    def serve(self, warehouse: Warehouse) -> str:
        """The URI at which the SQLite catalog of the warehouse answers until this process ends."""
        found = self._lines.request("serve", {"catalog": warehouse.java()})
        return f"http://127.0.0.1:{found['port']}"
