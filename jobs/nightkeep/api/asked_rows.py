"""The rows that a caller asks to change -> what documents state of them: column names and a keyed hash, no value.

Equal requests have equal hashes, so that a run id is still known to belong to one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nightkeep.records.keyed_hash import keyed_hash
from nightkeep.sql_text.rows.keys import key_names
from nightkeep.sql_text.rows.named_columns import named_columns

Asked = dict[str, object]


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
