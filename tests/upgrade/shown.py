"""The policy of the environment -> what commands show of its tables and reports, as far as no clock changes it."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Final

import nightkeep
from nightkeep.errors import NightkeepError
from nightkeep.model import Operation
from nightkeep.records import held, last_look
from nightkeep.records.codec import encode
from nightkeep.records.ledger import measured_of_table

EXPLAINED: Final = ("shop.orders", "lake.watched_held", "stream.orders")
_BY_THE_CLOCK = frozenset({"days_since_run", "level0_age_ms"})


def shown() -> dict[str, Any]:
    """Everything that a state's `expected.json` has of commands that only read."""
    listed = nightkeep.tables().to_json()
    names = sorted(nightkeep.status().to_json(), key=lambda each: str(each["name"]))
    found = [str(each["name"]) for each in names]
    return {
        "history": nightkeep.history().to_json(),
        "status": {str(each["name"]): _status(each) for each in names},
        "tables": listed,
        "explain": {name: nightkeep.explain(name).to_json() for name in EXPLAINED},
        "rows": {name: rows(name) for name in found},
        "holds": {name: hold(name) for name in found},
        "measured": {name: measured(name) for name in found},
        "looks": {name: look(name) for name in found},
    }


def rows(table: str) -> str | None:
    """The count and a digest of the rows of the newest version, in any order; None for a table that is not read."""
    try:
        read = nightkeep.read(table).read_all().to_pylist()
    except (NightkeepError, ValueError):
        return None
    lines = sorted(json.dumps(row, default=repr, sort_keys=True) for row in read)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return f"{len(lines)}:{digest}"


def _status(each: dict[str, object]) -> dict[str, object]:
    metrics = each["metrics"]
    assert isinstance(metrics, dict)
    return {name: value for name, value in sorted(metrics.items()) if name not in _BY_THE_CLOCK}


def hold(table: str) -> Any:
    """The hold on a table, as JSON."""
    return encode(held(_reports(), table))


def measured(table: str) -> Any:
    """What the ledger has of a table, by operation."""
    found = {each: measured_of_table(_reports(), table, each) for each in Operation}
    return {str(operation): encode(runs) for operation, runs in found.items() if runs}


def look(table: str) -> Any:
    """The mark up to which a table's history was examined, as JSON."""
    return encode(last_look(_reports(), table))


def _reports() -> str:
    return os.environ["NIGHTKEEP_REPORTS"]
