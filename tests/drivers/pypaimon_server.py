"""One JSON request per line -> pypaimon -> one JSON reply per line. Runs in an environment of its own."""

import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pypaimon.schema.data_types import PyarrowFieldParser  # type: ignore[import-not-found]
from pypaimon.table.file_store_table import FileStoreTable  # type: ignore[import-not-found]
from tests.drivers.canonical import column_to_arrow, order_key, rows_from_arrow, to_python

Request = Mapping[str, Any]


def read_arrow(request: Request) -> dict[str, Any]:
    """Every row as an Arrow table, which is dropped: how many, and the CPU seconds that it took."""
    builder = _open(request).new_read_builder()
    started = time.process_time()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return {"rows": found.num_rows, "cpu_seconds": time.process_time() - started}


def read(request: Request) -> dict[str, Any]:
    table = _open(request)
    types = _types(table)
    builder = table.new_read_builder()
    condition = request.get("filter")
    if condition is not None:
        builder = builder.with_filter(_predicate(builder.new_predicate_builder(), condition, types))
    splits = builder.new_scan().plan().splits()
    found = builder.new_read().to_arrow(splits) if splits else pa.table({name: [] for name in types})
    rows = rows_from_arrow(found.select(list(types)), list(types.values())) if splits else []
    kept = [row for row in rows if condition is None or _holds(condition, dict(zip(types, row, strict=True)), types)]
    columns = request.get("projection") or list(types)
    shown = [list(types).index(name) for name in columns]
    return {
        "columns": columns,
        "rows": [[row[i] for i in shown] for row in kept],
        "scanned": len(rows),
        "splits": len(splits),
        "raw_splits": sum(split.raw_convertible for split in splits),
        "files": sum(len(split.files) for split in splits),
    }


def write(request: Request) -> dict[str, Any]:
    """Plain upserts; where the table has rowkind.field, the row's kind goes into that column."""
    table = _open(request)
    types = _types(table)
    kind_column = table.table_schema.options.get("rowkind.field")
    kinds = [row[0] for row in request["rows"]]
    if kind_column is None and set(kinds) - {"+I"}:
        raise ValueError(f"kinds: expected +I only without rowkind.field, found {sorted(set(kinds))}")
    arrow = PyarrowFieldParser.from_paimon_schema(table.fields)
    columns = [
        kinds if name == kind_column else [row[i + 1] for row in request["rows"]] for i, name in enumerate(types)
    ]
    arrays = [
        column_to_arrow(column, text, field.type)
        for column, text, field in zip(columns, types.values(), arrow, strict=True)
    ]
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    try:
        writer.write_arrow(pa.Table.from_arrays(arrays, schema=arrow))
        commit.commit(writer.prepare_commit())
    finally:
        writer.close()
        commit.close()
    return {"snapshot": table.snapshot_manager().get_latest_snapshot().id}


def ping(request: Request) -> dict[str, Any]:
    return {"python": sys.version.split()[0]}


VERBS: dict[str, Callable[[Request], dict[str, Any]]] = {
    "ping": ping,
    "read": read,
    "read_arrow": read_arrow,
    "write": write,
}


def main() -> None:
    replies = sys.stdout
    # Whatever the library prints belongs to the log.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": VERBS[request["verb"]](request)}
        except Exception as failure:  # noqa: BLE001 - the reply carries any failure to the caller
            reply = {"error": _describe(failure)}
        print(json.dumps(reply, allow_nan=False), file=replies, flush=True)


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


def _open(request: Request) -> FileStoreTable:
    table = FileStoreTable.from_path(request["table"])
    options = request.get("options")
    return table.copy(options) if options else table


def _types(table: FileStoreTable) -> dict[str, str]:
    return {field.name: field.type.type for field in table.fields}


def _predicate(builder: Any, condition: Mapping[str, Any], types: Mapping[str, str]) -> Any:
    op = condition["op"]
    if op in ("and", "or"):
        children = [_predicate(builder, child, types) for child in condition["children"]]
        return builder.and_predicates(children) if op == "and" else builder.or_predicates(children)
    field = condition["field"]
    values = [to_python(value, types[field]) for value in condition.get("values", ())]
    make = getattr(builder, _PREDICATES[op])
    return make(field, values) if op == "in" else make(field, *values)


_PREDICATES = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less_than",
    "le": "less_or_equal",
    "gt": "greater_than",
    "ge": "greater_or_equal",
    "in": "is_in",
    "between": "between",
    "is_null": "is_null",
    "is_not_null": "is_not_null",
}


def _holds(condition: Mapping[str, Any], row: Mapping[str, Any], types: Mapping[str, str]) -> bool:
    """A comparison with null does not hold."""
    op = condition["op"]
    if op in ("and", "or"):
        held = [_holds(child, row, types) for child in condition["children"]]
        return all(held) if op == "and" else any(held)
    value, text = row[condition["field"]], types[condition["field"]]
    if value is None or op in ("is_null", "is_not_null"):
        return bool((value is None) == (op == "is_null")) and op in ("is_null", "is_not_null")
    key = order_key(value, text)
    return _COMPARISONS[op](key, [order_key(literal, text) for literal in condition["values"]])


_COMPARISONS: dict[str, Callable[[Any, list[Any]], bool]] = {
    "eq": lambda key, literals: bool(key == literals[0]),
    "ne": lambda key, literals: bool(key != literals[0]),
    "lt": lambda key, literals: bool(key < literals[0]),
    "le": lambda key, literals: bool(key <= literals[0]),
    "gt": lambda key, literals: bool(key > literals[0]),
    "ge": lambda key, literals: bool(key >= literals[0]),
    "in": lambda key, literals: key in literals,
    "between": lambda key, literals: bool(literals[0] <= key <= literals[1]),
}


if __name__ == "__main__":
    main()
