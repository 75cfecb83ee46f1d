"""A file of keys -> the condition that is true for rows with one of the keys. A null matches a null.

It is a plain condition: the rewrite, the gate, Spark and readers of the table's history need no file of keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from nightkeep.errors import UsageError
from nightkeep.model.arrow_types import Array, ChunkedArray
from nightkeep.sql_text.rows.comparison_types import is_text
from nightkeep.sql_text.rows.typed_literals import spelled

MAX_KEYS: Final = 10_000
"""The commit contains every key. Spark takes about 5 seconds to parse this many pairs, and memory grows with them."""
MAX_CHARACTERS: Final = 2 << 20
"""The longest condition. Readers of the log parse the commit as one line."""
MAX_NULL_PATTERNS: Final = 64
"""Most different sets of null columns. Each set is an alternative in the condition."""
_ADVICE: Final = "split the file, or state what the rows have in common with --rows-where"


def key_condition(file: Path, schema: pa.Schema) -> str:
    """Spark SQL that is true for exactly the rows of a table of `schema` that equal a row of `file` in its columns.

    Parquet, JSON Lines or CSV (an unquoted nothing is null), by the file's ending; keys may repeat. Raises UsageError
    naming the file, what was expected and what was found: a column that the table has not, or twice, no row, too many,
    a value that the table's column cannot hold as it is.
    """
    read = _READ.get(file.suffix.lower())
    if read is None:
        raise _wrong(file, f"a file that ends in {', '.join(_READ)}", f"{file.suffix or 'no ending'}")
    try:
        return _condition(file, _unique(file, read(file, schema)))
    except (OSError, ValueError, OverflowError, pa.ArrowException) as failure:
        raise _wrong(file, "keys as the table's columns hold them", str(failure)) from failure


def key_names(file: Path) -> tuple[str, ...]:
    """The columns of a file of keys; none of a file that cannot be read, which `key_condition` reports."""
    try:
        match file.suffix.lower():
            case ".parquet":
                return tuple(pq.read_schema(file).names)
            case ".csv":
                return tuple(csv.open_csv(file).schema.names)
            case _:
                with file.open(encoding="utf-8") as lines:
                    return tuple(json.loads(next(lines, "{}")))
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return ()


def _wrong(file: Path, expected: str, found: str) -> UsageError:
    return UsageError(f"{file}: expected {expected}, found {found}")


def _unique(file: Path, keys: pa.Table) -> pa.Table:
    if not keys.num_rows or not keys.num_columns:
        raise _wrong(file, "keys", "none")
    groups = keys.group_by(keys.column_names, use_threads=False).aggregate([])
    if groups.num_rows > MAX_KEYS:
        raise _wrong(file, f"at most {MAX_KEYS} keys ({_ADVICE})", str(groups.num_rows))
    return groups


def _condition(file: Path, keys: pa.Table) -> str:
    patterns: dict[tuple[bool, ...], list[list[str]]] = {}
    kinds = keys.schema.types
    for row in zip(*(column.to_pylist() for column in keys.columns), strict=True):
        values = [spelled(value, kind) for value, kind in zip(row, kinds, strict=True) if value is not None]
        patterns.setdefault(tuple(value is None for value in row), []).append(values)
    if len(patterns) > MAX_NULL_PATTERNS:
        expected = f"at most {MAX_NULL_PATTERNS} sets of columns that are null together ({_ADVICE})"
        raise _wrong(file, expected, str(len(patterns)))
    text = " OR ".join(_alternative(keys.column_names, *pattern) for pattern in sorted(patterns.items()))
    if len(text) > MAX_CHARACTERS:
        raise _wrong(file, f"keys of at most {MAX_CHARACTERS} characters ({_ADVICE})", f"{len(text)}")
    return text


def _alternative(names: Sequence[str], is_null: tuple[bool, ...], rows: Sequence[Sequence[str]]) -> str:
    """The condition for keys with nulls in the same columns. The other columns are one tuple without nulls."""
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    tests = [f"{name} IS NULL" for name, null in zip(quoted, is_null, strict=True) if null]
    compared = [name for name, null in zip(quoted, is_null, strict=True) if not null]
    if len(compared) == 1:
        tests.append(f"{compared[0]} IN ({', '.join(value for row in rows for value in row)})")
    elif compared:
        tests.append(f"({', '.join(compared)}) IN ({', '.join('(' + ', '.join(row) + ')' for row in rows)})")
    return f"({' AND '.join(tests)})"


def _columns(file: Path, names: Sequence[str], schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types of these columns of the table."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise _wrong(file, "every column once", f"{', '.join(twice)} more than once")
    unknown = [name for name in names if schema.get_field_index(name) < 0]
    if unknown:
        raise _wrong(file, f"columns of the table ({', '.join(schema.names)})", ", ".join(unknown))
    kinds = {name: schema.field(name).type for name in names}
    for name, kind in kinds.items():
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            raise _wrong(file, "columns of plain values", f"{name} of type {kind}")
    return kinds


def _parquet(file: Path, schema: pa.Schema) -> pa.Table:
    footer = pq.read_metadata(file)
    if footer.num_rows > MAX_KEYS * MAX_NULL_PATTERNS:
        # Refused before reading: so many rows are hardly repetitions of few keys.
        raise _wrong(file, f"at most {MAX_KEYS} keys ({_ADVICE})", f"{footer.num_rows} rows")
    kinds = _columns(file, footer.schema.to_arrow_schema().names, schema)
    with pq.ParquetFile(file) as opened:
        held = opened.read()
    return pa.table({name: _cast(file, name, held.column(name), kind) for name, kind in kinds.items()})


def _csv(file: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a CSV file, read with the table's types, so that 007 stays text in a text column."""
    plain = {field.name: field.type for field in schema if not pa.types.is_nested(field.type)}
    options = csv.ConvertOptions(
        column_types=plain, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    with csv.open_csv(file, read_options=csv.ReadOptions(block_size=1 << 24), convert_options=options) as opened:
        _columns(file, opened.schema.names, schema)
        return opened.read_all()


def _json_lines(file: Path, schema: pa.Schema) -> pa.Table:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [json.loads(line, parse_float=Decimal, object_pairs_hook=_pairs) for line in lines]
    names = list(rows[0]) if rows and isinstance(rows[0], Mapping) else []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or set(row) != set(names):
            raise _wrong(
                file, f"an object of {', '.join(names) or 'columns'} in every line", f"another in key {number}"
            )
    kinds = _columns(file, names, schema)
    return pa.table({name: _of_json(file, name, [row[name] for row in rows], kinds[name]) for name in names})


def _pairs(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a line that has a column more than once")
    return fields


def _of_json(file: Path, name: str, values: Sequence[object], kind: pa.DataType) -> ChunkedArray:
    """A column of a JSON file. Numbers keep all digits; values without a JSON literal are texts."""
    if pa.types.is_floating(kind):
        return pa.chunked_array([pa.array([None if each is None else _float(each) for each in values], kind)])
    if pa.types.is_decimal(kind):
        values = [_decimal(value) for value in values]
    held: Array = pa.array(values)
    if is_text(held.type) and (pa.types.is_temporal(kind) or pa.types.is_binary(kind)):
        held = held.cast(kind)
    return _cast(file, name, pa.chunked_array([held]), kind)


def _decimal(value: object) -> object:
    return Decimal(value) if isinstance(value, int | str) and not isinstance(value, bool) else value


def _float(value: object) -> float:
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        raise ValueError(f"{value!r} in a column of numbers")
    return float(value)


def _cast(file: Path, name: str, held: ChunkedArray, kind: pa.DataType) -> ChunkedArray:
    """The values cast to another type without change. Arrow refuses values that do not fit."""
    if pa.types.is_dictionary(held.type):
        held = held.cast(held.type.value_type)
    if held.type == kind:
        return held
    expected = f"column {name} of type {kind}"
    if not _keeps(held.type, kind):
        raise _wrong(file, expected, f"{held.type}")
    try:
        if pa.types.is_integer(held.type) and pa.types.is_decimal(kind):
            held = held.cast(pa.decimal256(76, kind.scale))
        return held.cast(kind)
    except pa.ArrowInvalid as failure:
        raise _wrong(file, expected, str(failure)) from failure


def _keeps(held: pa.DataType, kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(held) and pa.types.is_timestamp(kind):
        return (held.tz is None) == (kind.tz is None)
    if pa.types.is_floating(held) and pa.types.is_floating(kind):
        return bool(held.bit_width <= kind.bit_width)
    pairs: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]], ...] = (
        (pa.types.is_null, lambda _: True),
        (
            pa.types.is_integer,
            lambda to: pa.types.is_integer(to) or pa.types.is_decimal(to) or pa.types.is_floating(to),
        ),
        (pa.types.is_decimal, pa.types.is_decimal),
        (_is_any_text, is_text),
        (_is_any_binary, pa.types.is_binary),
    )
    return any(is_held(held) and is_kind(kind) for is_held, is_kind in pairs)


def _is_any_text(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_string_view(kind)


def _is_any_binary(kind: pa.DataType) -> bool:
    large = pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind)
    return bool(pa.types.is_binary(kind) or large)


_READ: Final[Mapping[str, Callable[[Path, pa.Schema], pa.Table]]] = {
    ".parquet": _parquet,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_lines,
    ".csv": _csv,
}
