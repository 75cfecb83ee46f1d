"""One JSON request per line -> deltalake or DuckDB -> one JSON reply per line. Runs in an environment of its own."""

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import duckdb  # type: ignore[import-not-found]
import duckdb_extension_avro  # type: ignore[import-not-found]
import duckdb_extension_delta  # type: ignore[import-not-found]
import duckdb_extension_iceberg  # type: ignore[import-not-found]
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake  # type: ignore[import-not-found]
from pyarrow import feather
from tests.drivers.lake_rows import answer

Request = Mapping[str, Any]

_HANDLES: dict[int, DeltaTable] = {}
_NUMBERS = count(1)


def duckdb_connection() -> Any:
    """Without the network: each extension lies in its package, in a folder named by DuckDB's version."""
    # The packages are locked by their hashes: to check the signatures of what they hold takes longer than to read.
    settings = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_unsigned_extensions": "true",
    }
    connection = duckdb.connect(config=settings)
    for package in (duckdb_extension_delta, duckdb_extension_avro, duckdb_extension_iceberg):
        (extension,) = Path(package.__file__).parent.glob("extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


_DUCKDB = duckdb_connection()


def duckdb_read(request: Request) -> dict[str, Any]:
    source = f"delta_scan('{request['path'].replace(chr(39), chr(39) * 2)}')"
    return answer(_DUCKDB.execute(_select(request, source)).to_arrow_table())


def duckdb_read_iceberg(request: Request) -> dict[str, Any]:
    snapshot = "" if request["snapshot"] is None else f", snapshot_from_id = {request['snapshot']}"
    source = f"iceberg_scan('{request['path'].replace(chr(39), chr(39) * 2)}'{snapshot})"
    # An internal error of DuckDB's, which some deletes are, ends the use of its database.
    with duckdb_connection() as connection:
        return answer(connection.execute(_select(request, source)).to_arrow_table())


def duckdb_find_iceberg(request: Request) -> list[dict[str, Any]]:
    """A database for all conditions: to begin one takes longer than to read."""
    source = f"iceberg_scan('{request['path'].replace(chr(39), chr(39) * 2)}')"
    with duckdb_connection() as connection:
        queries = (_select({"columns": ["*"], "where": where}, source) for where in request["where"])
        return [answer(connection.execute(query).to_arrow_table()) for query in queries]


def delta_rs_read(request: Request) -> dict[str, Any]:
    """Through DataFusion: to_pyarrow_table refuses tables with deletion vectors."""
    found = QueryBuilder().register("t", _table(request)).execute(_select(request, "t"))
    return answer(pa.table(found))


def load_cdf(request: Request) -> dict[str, Any]:
    changes = _table(request).load_cdf(request["starting_version"], request["ending_version"])
    return answer(pa.table(changes))


def open_handle(request: Request) -> dict[str, int]:
    table, handle = DeltaTable(request["path"], version=request["version"]), next(_NUMBERS)
    _HANDLES[handle] = table
    return {"handle": handle, "version": table.version()}


def optimize(request: Request) -> dict[str, Any]:
    """Bin-packing, or z_order where columns are given."""
    optimizer, target = _table(request).optimize, request["target_size"]
    columns, codec = request["columns"], request["codec"]
    how = {"target_size": target, "writer_properties": WriterProperties(compression=codec) if codec else None}
    return dict(optimizer.z_order(columns, **how) if columns else optimizer.compact(**how))


def vacuum(request: Request) -> list[str]:
    options = {name: request[name] for name in ("dry_run", "full", "retention_hours")}
    return sorted(_table(request).vacuum(**options, enforce_retention_duration=request["retention_hours"] is None))


def append(request: Request) -> None:
    options = {"partition_by": request["partition_by"], "configuration": request["properties"]}
    where = _HANDLES[request["handle"]] if "handle" in request else request["path"]
    write_deltalake(where, feather.read_table(request["rows"]), mode=request["mode"], **options)


def delete(request: Request) -> dict[str, Any]:
    return dict(_table(request).delete(request["where"]))


def checkpoint(request: Request) -> None:
    _table(request).create_checkpoint()


def history(request: Request) -> list[dict[str, Any]]:
    return list(_table(request).history())


VERBS: dict[str, Callable[[Request], Any]] = {
    "append": append,
    "checkpoint": checkpoint,
    "delete": delete,
    "delta_rs_read": delta_rs_read,
    "duckdb_find_iceberg": duckdb_find_iceberg,
    "duckdb_read": duckdb_read,
    "duckdb_read_iceberg": duckdb_read_iceberg,
    "history": history,
    "load_cdf": load_cdf,
    "open": open_handle,
    "optimize": optimize,
    "vacuum": vacuum,
}


def main() -> None:
    replies = sys.stdout
    # Whatever the libraries print belongs to the log.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": VERBS[request["verb"]](request)}
        except Exception as failure:  # noqa: BLE001 - the reply carries any failure to the caller
            reply = {"error": _describe(failure)}
        print(json.dumps(reply, default=str, allow_nan=False), file=replies, flush=True)


def _table(request: Request) -> DeltaTable:
    if "handle" in request:
        return _HANDLES[request["handle"]]
    return DeltaTable(request["path"], version=request.get("version"), storage_options=request.get("storage"))


def _select(request: Request, source: str) -> str:
    columns: Iterable[str] = request["columns"]
    condition = "" if request["where"] is None else f" WHERE {request['where']}"
    return f"SELECT {', '.join(columns)} FROM {source}{condition}"


def _describe(failure: Exception) -> dict[str, str]:
    root: BaseException = failure
    while root.__cause__ is not None:
        root = root.__cause__
    return {
        "class": type(failure).__qualname__,
        "message": str(failure),
        "root_class": type(root).__qualname__,
        "root_message": str(root),
        "trace": "".join(traceback.format_exception(failure)),
    }


if __name__ == "__main__":
    main()
