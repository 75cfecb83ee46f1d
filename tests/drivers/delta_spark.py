"""Requests -> a long-lived Spark with delta-spark 4.4.0 -> its answers. Nothing here reads a table."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.drivers.json_lines import Engine
from tests.drivers.lake_rows import Rows
from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_jar, spark_environment, spark_jars

DELTA_SPARK = "io.delta:delta-spark_4.1_2.13:4.4.0"
DELTA_STORAGE = "io.delta:delta-storage:4.4.0"

_HOLD_SECONDS = 100.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Generated:
    """Rows of SQL expressions over `id`, which counts from 0: Generated(100, ("id", "id % 7 AS day"))."""

    rows: int
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Writing:
    """How rows go into a table. `properties` are of the table when the write creates it; `files` is a number of
    tasks, each of which writes a file per partition; `options` are the writer's, such as mergeSchema."""

    mode: str = "append"
    files: int | None = 1
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    options: Mapping[str, str] | None = None


class DeltaSpark(Engine):
    """One Spark session in a process of its own. A failure of Spark's is an EngineError with its condition."""

    def __init__(
        self,
        *,
        memory: str = "2g",
        cores: int = 2,
        timeout: float = 180.0,
        java_options: str = " ".join(SHORT_LIVED),
        conf: Mapping[str, str] | None = None,
    ) -> None:
        jars = [str(fetch_jar(DELTA_SPARK)), str(fetch_jar(DELTA_STORAGE))]
        classes = compile_java(Path(__file__).parent / "java_delta", (*jars, spark_jars()))
        scratch = self._folder("nightkeep-delta-spark-")
        options = {
            "jars": [*jars, str(classes)],
            "scratch": scratch,
            "memory": memory,
            "cores": cores,
            "java_options": java_options,
            "conf": dict(conf or {}),
        }
        command = [sys.executable, "-m", "tests.drivers.delta_spark_server", json.dumps(options)]
        self._start(command, timeout=timeout, env=spark_environment(scratch))
        self._numbers = count()

    def sql(self, *statements: str, timeout: float | None = None) -> Rows:
        """Runs the statements in order; the rows of the last, in the engine's order."""
        return Rows.of(self._lines.request("sql", {"statements": statements}, timeout=timeout))

    def read(
        self,
        table: Path | str,
        *,
        version: int | None = None,
        where: str | None = None,
        columns: Sequence[str] = ("*",),
        options: Mapping[str, str] | None = None,
    ) -> Rows:
        """Rows in the order of their JSON. `columns` are expressions, such as "_metadata.row_id"."""
        fields = _loading(table, version, where, options)
        return Rows.of(self._lines.request("read", {**fields, "columns": list(columns)})).ordered()

    def find(self, table: Path | str, conditions: Sequence[str]) -> list[Rows]:
        """What `read` returns for each condition, by one job."""
        fields = _loading(table, None, None, None)
        found = Rows.of(self._lines.request("find", {**fields, "conditions": list(conditions)}))
        return found.parts(len(conditions))

    def bytes_read(self, table: Path | str, conditions: Sequence[str]) -> list[int]:
        """The bytes that a scan of all columns reads of files for each condition, footers included. Needs sessions with
        `parquet.hadoop.vectored.io.enabled` off: no counter of Hadoop's has what is read so."""
        fields = {**_loading(table, None, None, None), "conditions": list(conditions)}
        counts: list[int] = self._lines.request("bytes_read", fields)
        return counts

    def cpu_seconds(self) -> float:
        """What Spark's virtual machine has spent so far."""
        seconds: float = self._lines.request("cpu_seconds", {})
        return seconds

    def files(self, table: Path | str, *, version: int | None = None, where: str | None = None) -> tuple[str, ...]:
        """The files a filtered read opens after partition pruning and file skipping, by their names inside the
        table's folder: decoded, unlike paths in the log."""
        return tuple(self._lines.request("files", _loading(table, version, where, None)))

    def write(self, table: Path | str, source: pa.Table | Path | Generated, writing: Writing | None = None) -> int:
        """One commit of an Arrow table, a Parquet file or generated rows; returns the table's latest version."""
        how = writing or Writing()
        fields = {
            "path": _absolute(table),
            "source": self._source(source),
            "mode": how.mode,
            "files": how.files,
            "partition_by": how.partition_by,
            "options": {**(how.properties or {}), **(how.options or {})},
        }
        self._lines.request("write", fields)
        return latest_version(table)

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

    @contextlib.contextmanager
    def held(self, *statements: str) -> Iterator["Future[Rows]"]:
        """Runs statements up to the moment before their first commit is written, and goes on when the block ends.

        The future, done after the block, has the rows of the last, or raises. This object answers nothing meanwhile.
        """
        hold, held = (Path(self._scratch.name) / name for name in ("hold", "held"))
        hold.touch()
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(self.sql, *statements)
            try:
                _await(held, running)
                yield running
            finally:
                hold.unlink()
                wait((running,))
                held.unlink(missing_ok=True)

    def checkpoint(self, table: Path | str) -> None:
        """Writes a checkpoint of the latest version, of the kind the table's policy names."""
        self._lines.request("checkpoint", {"path": _absolute(table)})

    def forget(self) -> None:
        """Drops cached snapshots: needed where a table's folder was replaced by another."""
        self._lines.request("forget", {})

    def _source(self, source: pa.Table | Path | Generated) -> dict[str, Any]:
        if isinstance(source, Generated):
            return {"rows": source.rows, "select": source.select}
        if isinstance(source, Path):
            return {"parquet": str(source.absolute())}
        file = Path(self._scratch.name) / f"source-{next(self._numbers)}.parquet"
        pq.write_table(source, file)
        return {"parquet": str(file)}


def named(table: Path | str) -> str:
    """How SQL names the table of a folder."""
    return f"delta.`{_absolute(table)}`"


def latest_version(table: Path | str) -> int:
    """Of the commits in the table's log."""
    return max(int(file.stem) for file in (Path(table) / "_delta_log").glob("[0-9]*.json") if file.stem.isdecimal())


def _await(held: Path, running: "Future[Rows]") -> None:
    end = time.monotonic() + _HOLD_SECONDS
    while not held.exists():
        if running.done() or time.monotonic() > end:
            failure = running.exception() if running.done() else None
            raise AssertionError(f"expected a commit to be held, found {running}") from failure
        wait((running,), timeout=_POLL_SECONDS)


def _loading(
    table: Path | str, version: int | None, where: str | None, options: Mapping[str, str] | None
) -> dict[str, Any]:
    travel = {} if version is None else {"versionAsOf": str(version)}
    return {"path": _absolute(table), "where": where, "options": {**travel, **(options or {})}}


def _absolute(table: Path | str) -> str:
    return str(table) if "://" in str(table) else str(Path(table).absolute())
