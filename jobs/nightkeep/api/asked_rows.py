"""The rows that a caller asks to change -> the options of an order, and what documents state of these rows: column
names and a keyed hash, no value.

Equal requests have equal hashes, so that a run id is still known to belong to one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nightkeep.admission.order import CallOptions
from nightkeep.errors import UsageError
from nightkeep.records.keyed_hash import keyed_hash
from nightkeep.sql_text.rows.keys import key_names
from nightkeep.sql_text.rows.named_columns import named_columns

Asked = dict[str, object]


def rows_to_delete(rows_where: str | None, keys: str | Path | None) -> CallOptions:
    """The rows for which a condition is true, or that have one of the keys of a file. Raises UsageError."""
    if (rows_where is None) == (keys is None):
        named = "neither" if keys is None else "both"
        raise UsageError(f"the rows to delete: expected --rows-where or --keys, found {named}")
    if keys is not None:
        return CallOptions(keys=Path(keys), asked={"keys": asked_keys(Path(keys))})
    return CallOptions(rows=rows_where, asked={"rows_where": asked_condition(str(rows_where))})


def rows_to_update(sets: Sequence[str], rows_where: str | None) -> CallOptions:
    """The rows for which a condition is true, and what their columns are set to. Raises UsageError."""
    if not sets or rows_where is None:
        named = "--set" if not sets else "--rows-where"
        raise UsageError(f"the rows to update: expected --set and --rows-where, found no {named}")
    asked = {"rows_where": asked_condition(rows_where), "set": asked_values(sets)}
    return CallOptions(rows=rows_where, sets=tuple(sets), asked=asked)


def asked_condition(text: str) -> Asked:
    return {"columns": list(named_columns(text)), "hash": keyed_hash(text.encode())}


def asked_values(sets: Sequence[str]) -> Asked:
    """The columns that "column = expression" texts set or read."""
    columns = dict.fromkeys(name for text in sets for name in named_columns(text))
    return {"columns": list(columns), "hash": keyed_hash("\n".join(sets).encode())}


def asked_keys(file: Path) -> Asked:
    """The hash of a file of keys, or of its path if it cannot be read. That failure is reported later."""
    try:
        content = file.read_bytes()
    except OSError:
        return {"columns": [], "hash": keyed_hash(str(file).encode())}
    return {"columns": list(key_names(file)), "hash": keyed_hash(content)}
