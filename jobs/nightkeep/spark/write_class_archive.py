"""A short session with a check -> the archive of the Java classes that it loaded.

`python -m nightkeep.spark.write_class_archive` writes it, in half a minute. The check is that of a small Delta table,
made for it. Other archives in the folder are removed, as each is large.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.checking.check import check
from nightkeep.errors import UsageError
from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus
from nightkeep.spark.class_archive import FOLDER, QUIET, archive_folder, archive_name, sized
from nightkeep.spark.engine import Engine
from nightkeep.spark.settings import OPTIONS_OF_FEW_BYTES

_END_SECONDS: Final = 300.0
_MASTER: Final = "local[1]"
_TASK_MEMORY: Final = 1 << 30


def write_class_archive() -> Path:
    """Write the archive for this Java and these jars, and return its file. Sets variables of this process.

    Raises UsageError if the environment has no place for it or no Java, or if the JVM writes none.
    """
    folder, name = archive_folder(os.environ), archive_name(os.environ)
    if folder is None or name is None:
        raise UsageError(f"{FOLDER}: expected a folder of plain characters, Java and Spark's jars, found {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}.{os.getpid()}.part"
    try:
        _record(made)
        if not made.is_file():
            raise UsageError(f"{made}: expected an archive that Java wrote, found none")
        file = folder / sized(name, made.stat().st_size)
        made.replace(file)
    finally:
        with suppress(FileNotFoundError):
            made.unlink()
    for other in folder.glob("spark-classes-*.jsa"):
        if other != file:
            other.unlink(missing_ok=True)
    return file


def _record(made: Path) -> None:
    """Run a session whose JVM records at its end which classes it loaded."""
    os.environ.pop("SPARK_LAUNCHER_OPTS", None)
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([*OPTIONS_OF_FEW_BYTES, f"-XX:ArchiveClassesAtExit={made}", *QUIET])
    with tempfile.TemporaryDirectory(prefix="nightkeep-classes-") as scratch:
        address = _table(Path(scratch, "t"))
        with Engine(master=_MASTER, task_memory_bytes=_TASK_MEMORY) as engine:
            spark = engine.spark()
            java = cast(Any, spark.sparkContext)._gateway.proc
            report = check(CheckRequest(address), spark=spark)
    # Without its input the JVM ends.
    java.stdin.close()
    try:
        java.wait(_END_SECONDS)
    finally:
        java.kill()
    if report.status is not CheckStatus.PASSED:
        raise UsageError(f"{address.name}: expected a check that passes, found {report.status}: {report.reason}")


def _table(folder: Path) -> Address:
    """A Delta table whose second version has the rows of the first in one file."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    half = [_file(folder, name, range(n, n + 10)) for name, n in (("a", 0), ("b", 10))]
    kinds = {"id": "long", "price": "double", "text": "string"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    metadata = {
        "id": "classes",
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [],
        "configuration": {},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "createdTime": 0,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    _commit(log, 0, [{"protocol": protocol}, {"metaData": metadata}, *({"add": each} for each in half)])
    gone = [{"remove": {"path": each["path"], "deletionTimestamp": 1, "dataChange": False}} for each in half]
    _commit(log, 1, [*gone, {"add": {**_file(folder, "c", range(20)), "dataChange": False}}])
    return Address("delta", str(folder), "classes")


def _file(folder: Path, name: str, numbers: range) -> dict[str, object]:
    path = folder / f"{name}.parquet"
    rows = {"id": [*numbers], "price": [n / 2 for n in numbers], "text": [f"row {n}" for n in numbers]}
    pq.write_table(pa.table(rows), path)
    bounds = {"minValues": {"id": numbers[0]}, "maxValues": {"id": numbers[-1]}}
    nulls = dict.fromkeys(("id", "price", "text"), 0)
    stats = {"numRecords": len(numbers), **bounds, "nullCount": nulls}
    return {
        "path": path.name,
        "partitionValues": {},
        "size": path.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _commit(log: Path, version: int, actions: Sequence[Mapping[str, object]]) -> None:
    Path(log, f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


if __name__ == "__main__":
    print(write_class_archive(), file=sys.stderr)
