"""A Delta table's folder -> one optimize by Nightkeep, without Spark -> the document of the run; and what is left."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.drivers.lake_rows import Rows, rows_of

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.formats.delta.format import DeltaTable, open_table
from nightkeep.model import Address, Operation, run_token
from nightkeep.policy import EffectivePolicy, load
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline


def policy(table: Path, **settings: object) -> EffectivePolicy:
    """The policy for a table that no file lists; `settings` are keys of its defaults layer, `_` for `-`."""
    text = yaml.safe_dump({"version": 1, "defaults": settings})
    return load("tables.yaml", text=text).effective(f"delta:{table.absolute()}")


def optimize(
    table: Path, *, run_id: str | None = None, operation: Operation = Operation.OPTIMIZE, **settings: object
) -> RunDocument:
    """Plan, rewrite, prove and publish in this process; holds are looked for beside the table, where none are."""
    reports = str(table.parent / f"{table.name}-reports")
    order = Order(operation, run_id or f"test-{uuid.uuid4().hex}", reports)
    return run_operation(policy(table, **settings), order, mapper=lambda: inline)


def shown(table: Path, where: str | None = None, **options: Any) -> Rows:
    """What nightkeep.read shows of the newest version."""
    return rows_of(nightkeep.read(f"delta:{table}", where=where, **options).read_all()).ordered()


def delete_where(table: Path, rows: str, *, run_id: str | None = None, **settings: object) -> RunDocument:
    """Our own delete, of the rows that a condition is true for."""
    reports = str(table.parent / f"{table.name}-reports")
    order = Order(Operation.DELETE, run_id or f"test-{uuid.uuid4().hex}", reports, rows=rows)
    return run_operation(policy(table, **settings), order, mapper=lambda: inline)


def opened(table: Path) -> DeltaTable:
    return open_table(Address("delta", str(table), table.name))


def files(table: Path) -> dict[str, bytes]:
    """Every file below the table's folder, by relative name, as a digest of its bytes."""
    found = (path for path in table.rglob("*") if path.is_file())
    return {str(path.relative_to(table)): hashlib.blake2b(path.read_bytes()).digest() for path in found}


def leftovers(table: Path, before: Mapping[str, bytes]) -> set[str]:
    """Files of ours that are new since `before` and that the latest version does not need."""
    needed = {file.name for unit in opened(table).snapshot().units for file in unit.files}
    return {name for name in files(table).keys() - before.keys() - needed if "nk-" in name}


def token(run_id: str, operation: Operation = Operation.OPTIMIZE) -> str:
    """What file names and commits say of a run."""
    return run_token(run_id, operation)


def commits_of(table: Path, run_id: str) -> list[int]:
    """Versions that a run committed, by their own words."""
    found = []
    for path in sorted((table / "_delta_log").glob("[0-9]*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        told = [action["commitInfo"].get("userMetadata") for action in actions if "commitInfo" in action]
        found += [int(path.stem)] if f"nightkeep-{token(run_id)}" in told else []
    return found
