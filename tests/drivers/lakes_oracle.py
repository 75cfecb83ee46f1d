"""Requests -> deltalake 1.6.6 and DuckDB 1.5.5 in an environment of their own -> their answers.

deltalake cannot read tables with type widening or vacuumProtocolCheck, does not write tables with row tracking or
in-commit timestamps, and its full vacuum deletes live deletion vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather
from tests.drivers.json_lines import Engine
from tests.drivers.lake_rows import Rows
from tests.drivers.pypaimon_oracle import locked_environment
from tests.drivers.toolchain import python_environment

_REQUIREMENTS = Path(__file__).parent / "lakes-requirements.txt"


@dataclass(frozen=True, slots=True)
class Handle:
    """A table as delta-rs has it open: it stays at its version whatever others commit."""

    number: int
    version: int


class Lakes(Engine):
    """One process of the environment, which uv builds on first use. A failure is an EngineError.

    Verbs of delta-rs take a path, which is opened at its latest version, or a Handle.
    """

    def __init__(self, *, timeout: float = 120.0) -> None:
        scratch = self._folder("nightkeep-lakes-")
        command = [str(lakes_python()), "-m", "tests.drivers.lakes_server"]
        self._start(command, timeout=timeout, env=python_environment(scratch))
        self._numbers = count()

    def delta_rs_read(
        self,
        table: Path | str | Handle,
        *,
        version: int | None = None,
        where: str | None = None,
        columns: Sequence[str] = ("*",),
        storage: Mapping[str, str] | None = None,
    ) -> Rows:
        """Rows ordered by their JSON; `where` and `columns` are DataFusion's SQL. Of a URI, with `storage` options."""
        fields = {**_of(table), "version": version, "where": where, "columns": list(columns), "storage": storage}
        return Rows.of(self._lines.request("delta_rs_read", fields)).ordered()

    def duckdb_read(self, table: Path | str, *, where: str | None = None, columns: Sequence[str] = ("*",)) -> Rows:
        """Rows of the latest version in the order of their JSON; `where` and `columns` are DuckDB's SQL."""
        fields = {**_of(table), "where": where, "columns": list(columns)}
        return Rows.of(self._lines.request("duckdb_read", fields)).ordered()

    def duckdb_read_iceberg(
        self, metadata: Path, *, snapshot: int | None = None, where: str | None = None, columns: Sequence[str] = ("*",)
    ) -> Rows:
        """Rows of an Iceberg table by its metadata file, as above. What DuckDB fails on is named in golden_tables.py;
        a dropped key column and manifests in zstd end its process, and so this object's use."""
        fields = {**_of(metadata), "snapshot": snapshot, "where": where, "columns": list(columns)}
        return Rows.of(self._lines.request("duckdb_read_iceberg", fields)).ordered()

    def duckdb_find_iceberg(self, metadata: Path, conditions: Sequence[str]) -> list[Rows]:
        """The rows by each condition, as above."""
        found = self._lines.request("duckdb_find_iceberg", {**_of(metadata), "where": list(conditions)})
        return [Rows.of(each).ordered() for each in found]

    def load_cdf(self, table: Path | str | Handle, *, starting: int = 0, ending: int | None = None) -> Rows:
        """The change feed of versions, both included, with delta-rs's three columns about each change."""
        fields = {**_of(table), "starting_version": starting, "ending_version": ending}
        return Rows.of(self._lines.request("load_cdf", fields)).ordered()

    def open(self, table: Path | str, *, version: int | None = None) -> Handle:
        found = self._lines.request("open", {**_of(table), "version": version})
        return Handle(found["handle"], found["version"])

    def delta_rs_append(
        self,
        table: Path | str | Handle,
        rows: pa.Table,
        *,
        mode: str = "append",
        partition_by: Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Creates the table if there is none; `properties` are for that."""
        file = Path(self._scratch.name) / f"rows-{next(self._numbers)}.arrow"
        feather.write_feather(rows, str(file))
        fields = {"rows": str(file), "mode": mode, "partition_by": partition_by, "properties": properties}
        self._lines.request("append", {**_of(table), **fields})

    def delta_rs_delete(self, table: Path | str | Handle, where: str | None = None) -> dict[str, Any]:
        return dict(self._lines.request("delete", {**_of(table), "where": where}))

    def delta_rs_optimize(self, table: Path | str | Handle, *, target_size: int | None = None) -> dict[str, Any]:
        """Bin-packing; the metrics as delta-rs returns them."""
        return self._optimize(table, (), target_size)

    def delta_rs_z_order(
        self,
        table: Path | str | Handle,
        columns: Sequence[str],
        *,
        target_size: int | None = None,
        codec: str | None = None,
    ) -> dict[str, Any]:
        """`codec` is of the files written, such as "SNAPPY"; zstd by default."""
        return self._optimize(table, columns, target_size, codec)

    def delta_rs_vacuum(
        self,
        table: Path | str | Handle,
        *,
        retention_hours: int | None = None,
        dry_run: bool = True,
        full: bool = False,
    ) -> tuple[str, ...]:
        """The files that are deleted, or would be; given hours may be shorter than the table's own."""
        fields = {"retention_hours": retention_hours, "dry_run": dry_run, "full": full}
        return tuple(self._lines.request("vacuum", {**_of(table), **fields}))

    def delta_rs_checkpoint(self, table: Path | str | Handle) -> None:
        self._lines.request("checkpoint", _of(table))

    def delta_rs_history(self, table: Path | str | Handle) -> list[dict[str, Any]]:
        """commitInfo of each version, newest first."""
        return list(self._lines.request("history", _of(table)))

    def _optimize(
        self, table: Path | str | Handle, columns: Sequence[str], target_size: int | None, codec: str | None = None
    ) -> dict[str, Any]:
        fields = {"columns": list(columns), "target_size": target_size, "codec": codec}
        return dict(self._lines.request("optimize", {**_of(table), **fields}))


def lakes_python() -> Path:
    return locked_environment("lakes", _REQUIREMENTS) / "bin" / "python"


def _of(table: Path | str | Handle) -> dict[str, Any]:
    if isinstance(table, Handle):
        return {"handle": table.number}
    return {"path": table if "://" in str(table) else str(Path(table).absolute())}
