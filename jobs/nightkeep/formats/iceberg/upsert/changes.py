"""Change files, Parquet or JSON Lines -> rows with the table's columns and types, and the effect of each change."""

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
from nightkeep.formats.iceberg.upsert.exact import exactly
from nightkeep.model.arrow_types import ChunkedArray

KIND: Final = "_change_type"
"""The column with a change's kind, named as in Iceberg's changelog tables. Without it every change is an insert."""
_BLOCK_BYTES: Final = 64 << 20
"""The longest JSON line in bytes."""


@dataclass(frozen=True, slots=True)
class Changes:
    """`rows` have the table's columns in its types. `writes`: whether a change writes its row or deletes its key."""

    rows: pa.Table
    writes: npt.NDArray[np.bool_]

    def only(self, chosen: npt.NDArray[np.bool_]) -> Changes:
        if chosen.all():
            return self
        return Changes(self.rows.filter(pa.array(chosen)), self.writes[chosen])


def read_changes(path: str, columns: pa.Schema, mode: ChangeMode) -> Changes:
    """The changes of a file, in their order, without those that the mode ignores.

    Raises UsageError naming the file for a column that the table does not have, a value that its type cannot hold
    exactly (exact.exactly), an unknown kind of change, and a kind that the mode does not allow.
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
    """Raises UsageError for a null in a required column. Deletes of an upsert need only their key."""
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
    """For each change the index of its kind in CHANGES."""
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
    """The rows of a JSON Lines file. Types that JSON lacks are strings (spec, "JSON single-value serialization")."""
    schema = pa.schema([*(_as_text(file, field) for field in columns), pa.field(KIND, pa.string())])
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    held = json.read_json(file, json.ReadOptions(block_size=_BLOCK_BYTES), options)
    _require_columns(file, held.column_names, columns)
    # Arrow also returns columns that no line has, all null. Without a kind every change is an insert.
    return held.drop_columns([KIND]) if held.column(KIND).null_count == held.num_rows else held


def _as_text(file: Path, field: pa.Field) -> pa.Field:  # type: ignore[type-arg]
    kind = field.type
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_map(kind):
        raise _wrong(
            file, "Parquet, as JSON cannot represent every column of the table", f"column {field.name} of {kind}"
        )
    return pa.field(field.name, _readable(kind))


def _readable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _readable(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    if pa.types.is_floating(kind):
        # Read as double; `exactly` then checks whether a float holds the same number.
        return pa.float64()
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return kind if plain else pa.string()


_READ: Mapping[str, Callable[[Path, pa.Schema], pa.Table]] = {
    ".parquet": _parquet,
    ".json": _json_lines,
    ".jsonl": _json_lines,
}
