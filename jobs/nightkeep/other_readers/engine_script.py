"""Requests, a JSON line each -> rows of a version of a table as one engine reads them, as Arrow streams.

Run as a script by any Python that has the engine and pyarrow: Nightkeep need not be installed there, and nothing of it
is imported. Credentials come from the environment. An answer is a JSON line, if that has `engine` an Arrow stream, then
a JSON line that states how it ended.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

Request = Mapping[str, Any]
Batches = tuple[Any, Iterable[Any]]
"""A schema of Arrow, and batches of it."""

_LONGEST = 600


def deltalake(request: Request) -> Batches:
    """Through DataFusion, as to_pyarrow_table refuses tables with deletion vectors."""
    engine, arrow = import_module("deltalake"), import_module("pyarrow")
    table = engine.DeltaTable(request["location"], version=request["version"])
    rows = arrow.RecordBatchReader.from_stream(engine.QueryBuilder().register("t", table).execute("SELECT * FROM t"))
    return rows.schema, rows


def duckdb(request: Request) -> Batches:
    """Uses the extensions from DuckDB's Python packages, or else the installed ones. Nothing is downloaded."""
    engine = import_module("duckdb")
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = engine.connect(config=offline)
    delta = request["format"] == "delta"
    for extension in ("delta",) if delta else ("avro", "iceberg"):
        connection.execute(f"LOAD {_quoted(_packaged(extension))}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET arrow_lossless_conversion = true")
    place, version = _quoted(request["location"]), int(request["version"])
    scan = f"delta_scan({place}, version={version})" if delta else f"iceberg_scan({place}, snapshot_from_id={version})"
    rows = connection.execute(f"SELECT * FROM {scan}").to_arrow_reader(_BATCH_ROWS)
    return rows.schema, rows


def pyiceberg(request: Request) -> Batches:
    """As its catalog names the table."""
    location = request["location"]
    scheme, mark, rest = location.partition("://")
    catalog, _, name = (rest if mark else location).partition("/")
    # A metastore's address stands for a catalog without further settings.
    kinds = {"thrift": {"type": "hive", "uri": f"thrift://{catalog}"}, "glue": {"type": "glue", "glue.region": catalog}}
    table = import_module("pyiceberg.catalog").load_catalog(catalog, **kinds.get(scheme, {})).load_table(name)
    rows = table.scan(snapshot_id=request["version"]).to_arrow_batch_reader()
    return rows.schema, rows


def pypaimon(request: Request) -> Batches:
    options = {"scan.snapshot-id": str(request["version"])}
    if request["merged"]:
        options["deletion-vectors.merge-on-read"] = "true"
    table = import_module("pypaimon.table.file_store_table").FileStoreTable.from_path(request["location"])
    builder = table.copy(options).new_read_builder()
    splits = builder.new_scan().plan().splits()
    if not splits:
        parser = import_module("pypaimon.schema.data_types").PyarrowFieldParser
        return parser.from_paimon_schema(table.fields), ()
    rows = builder.new_read().to_arrow_batch_reader(splits)
    return rows.schema, rows


ENGINES: Mapping[str, Callable[[Request], Batches]] = {
    "deltalake": deltalake,
    "duckdb": duckdb,
    "pyiceberg": pyiceberg,
    "pypaimon": pypaimon,
}
_BATCH_ROWS = 65_536


def main() -> None:
    name, most_bytes = sys.argv[1], int(sys.argv[2])
    # Whatever the engine prints goes where errors go.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Not the address space: engines reserve more of it than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    for line in sys.stdin.buffer:
        try:
            version = _version(name)
        except Exception as failure:  # noqa: BLE001 -- whatever a package does when it is imported
            _write_line(answers, {"missing": _sentence(failure)})
            continue
        _answer(answers, name, version, json.loads(line))


def _answer(answers: BinaryIO, name: str, version: str, request: Request) -> None:
    arrow = import_module("pyarrow")
    try:
        schema, batches = ENGINES[name](request)
    except BaseException as failure:  # noqa: BLE001 -- panics of Rust are no Exception
        _write_line(answers, {"unread": _sentence(failure), "by": version})
        return
    _write_line(answers, {"engine": version})
    end: dict[str, str] = {}
    with closing(arrow.ipc.new_stream(answers, schema)) as stream:
        try:
            for batch in batches:
                stream.write_batch(batch)
        except BaseException as failure:  # noqa: BLE001 -- as above
            end = {"unread": _sentence(failure)}
    _write_line(answers, end)


def _version(name: str) -> str:
    import_module("pyarrow")
    import_module(name)
    return f"{name} {import_module('importlib.metadata').version(name)}"


def _write_line(answers: BinaryIO, content: Mapping[str, str]) -> None:
    answers.write(json.dumps(content).encode() + b"\n")
    answers.flush()


def _sentence(failure: BaseException) -> str:
    """The first line of the innermost cause: stacks of native code follow it."""
    while failure.__cause__ is not None:
        failure = failure.__cause__
    # DataFusion writes a cause below what it made fail.
    cause = re.split(r"\ncaused by\n", f"{type(failure).__name__}: {failure}")[-1]
    return cause.strip().partition("\n")[0][:_LONGEST]


def _packaged(extension: str) -> str:
    """The extension's file in its package, or its name."""
    try:
        package = import_module(f"duckdb_extension_{extension}")
    except ImportError:
        return extension
    return str(next(Path(str(package.__file__)).parent.glob("extensions/*/*.duckdb_extension"), extension))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    main()
