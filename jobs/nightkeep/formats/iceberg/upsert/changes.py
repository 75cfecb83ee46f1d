"""Change files -> rows of the table's own columns and types, and what each change does. Parquet or JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as json
import pyarrow.parquet as pq

from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.upsert.batch import CHANGES, INSERT, UPDATE_BEFORE, ChangeMode
from nightkeep.formats.iceberg.upsert.exact import ChunkedArray, exactly

KIND: Final = "_change_type"
"""The column of a change's kind, as Iceberg's changelog tables call it; without it every change is an insert."""
_BLOCK_BYTES: Final = 64 << 20
"""A JSON line may not be longer."""


@dataclass(frozen=True, slots=True)
class Changes:
    """`rows` have the table's columns, in order and of its types; a change `writes` its row, or deletes its key."""

    rows: pa.Table
    writes: npt.NDArray[np.bool_]

    def only(self, chosen: npt.NDArray[np.bool_]) -> Changes:
        if chosen.all():
            return self
        return Changes(self.rows.filter(pa.array(chosen)), self.writes[chosen])


def read_changes(path: str, columns: pa.Schema, mode: ChangeMode) -> Changes:
    """The changes of a file, in their order, without those that the mode ignores.

    Raises UsageError naming the file, what was expected and what was found: a column that the table has not, a value
    its type cannot hold as it is (exact.exactly), an unknown kind of change, a change that the mode has no meaning for.
    """
    file = Path(path)
    read = _READ.get(file.suffix.lower())
    if read is None:
        raise _wrong(file, f"a file that ends in {', '.join(_READ)}", file.suffix or "no ending")
    try:
        held = read(file, columns)
    except (OSError, ValueError, pa.ArrowException) as failure:
        raise _wrong(file, "changes as the table's columns hold them", str(failure)) from failure
    spelled = read is _json_lines
    rows = pa.table([_column(file, held, field, spelled=spelled) for field in columns], schema=columns)
    if KIND not in held.column_names:
        return Changes(rows, np.ones(rows.num_rows, np.bool_))
    kinds = _kinds(file, held.column(KIND), mode)
    writes = np.array([change.writes for change in CHANGES])[kinds]
    ignored = CHANGES.index(UPDATE_BEFORE) if mode is ChangeMode.UPSERT else -1
    return Changes(rows, writes).only(kinds != ignored)


def require_values(changes: Changes, required: Iterable[str], *, keys: tuple[str, ...], mode: ChangeMode) -> None:
    """Raise UsageError for a null in a column that must have none: deletes of an upsert need a key only."""
    for name in required:
        missing = pc.is_null(changes.rows.column(name)).to_numpy()
        if mode is ChangeMode.UPSERT and name not in keys:
            missing = missing & changes.writes
        if missing.any():
            count = int(missing.sum())
            raise UsageError(f"column {name}: expected a value in every row, found {count} rows without")


def _wrong(file: Path, expected: str, found: str) -> UsageError:
    return UsageError(f"{file}: expected {expected}, found {found}")


def _kinds(file: Path, texts: ChunkedArray, mode: ChangeMode) -> npt.NDArray[np.int64]:
    """For each change its place in CHANGES."""
    spellings = [change.name for change in CHANGES] + [change.short for change in CHANGES]
    places = pc.index_in(texts.cast(pa.string()), pa.array(spellings))
    unknown = pc.unique(texts.filter(pc.is_null(places)))
    if len(unknown):
        raise _wrong(file, f"{KIND} to be one of {', '.join(spellings)}", f"{unknown[0].as_py()!r}")
    kinds = np.asarray(places.to_numpy(), np.int64) % len(CHANGES)
    if mode is ChangeMode.APPEND and (kinds != CHANGES.index(INSERT)).any():
        raise _wrong(file, f"only {INSERT.name} in mode {mode}", CHANGES[int(kinds[kinds > 0][0])].name)
    return kinds


def _column(
    file: Path,
    held: pa.Table,
    field: pa.Field,  # type: ignore[type-arg]
    *,
    spelled: bool,
) -> ChunkedArray:
    if field.name not in held.column_names:
        return pa.chunked_array([pa.nulls(held.num_rows, field.type)])
    try:
        return exactly(held.column(field.name), field.type, spelled=spelled)
    except ValueError as failure:
        raise _wrong(file, f"column {field.name} as {field.type}", str(failure)) from failure


def _require_columns(file: Path, names: list[str], columns: pa.Schema) -> None:
    unknown = sorted(set(names) - {*columns.names, KIND})
    if unknown:
        raise _wrong(file, f"columns of the table ({', '.join(columns.names)}) and {KIND}", ", ".join(unknown))


def _parquet(file: Path, columns: pa.Schema) -> pa.Table:
    with pq.ParquetFile(file) as opened:
        _require_columns(file, opened.schema_arrow.names, columns)
        return opened.read()


def _json_lines(file: Path, columns: pa.Schema) -> pa.Table:
    """What JSON has no type for is read as text, as Iceberg spells it (spec, "JSON single-value serialization")."""
    wanted = pa.schema([*(_as_text(file, field) for field in columns), pa.field(KIND, pa.string())])
    options = json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="infer")
    held = json.read_json(file, json.ReadOptions(block_size=_BLOCK_BYTES), options)
    _require_columns(file, held.column_names, columns)
    # Columns that no line has are there, too, all null: a change without a kind is an insert.
    return held.drop_columns([KIND]) if held.column(KIND).null_count == held.num_rows else held


def _as_text(file: Path, field: pa.Field) -> pa.Field:  # type: ignore[type-arg]
    kind = field.type
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_map(kind):
        raise _wrong(file, "Parquet, as JSON cannot tell every column of the table", f"column {field.name} of {kind}")
    return pa.field(field.name, _readable(kind))


def _readable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _readable(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    if pa.types.is_floating(kind):
        # As a double, of which `exactly` tells whether a float is that number, too.
        return pa.float64()
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return kind if plain else pa.string()


_READ: Mapping[str, Callable[[Path, pa.Schema], pa.Table]] = {
    ".parquet": _parquet,
    ".json": _json_lines,
    ".jsonl": _json_lines,
}
