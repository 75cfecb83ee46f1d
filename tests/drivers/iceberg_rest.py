"""A REST catalog as a process: Iceberg's own handlers of the protocol over a SQLite catalog, on a loopback port."""

from tests.drivers.iceberg_java import java_command
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.json_lines import Engine


class IcebergRest(Engine):
    """One JVM serving any number of catalogs, each on a port of its own."""

    def __init__(self, *, timeout: float = 60.0) -> None:
        scratch = self._folder("nightkeep-iceberg-rest-")
        command = java_command("IcebergDriver", scratch, memory="512m")
        self._start(command, timeout=timeout)

    def serve(self, warehouse: Warehouse) -> str:
        """The URI at which the SQLite catalog of the warehouse answers until this process ends."""
        found = self._lines.request("serve", {"catalog": warehouse.java()})
        return f"http://127.0.0.1:{found['port']}"
