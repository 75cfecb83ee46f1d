"""A table's folder -> one upgrade or compaction by Nightkeep, without Spark -> the document of the run."""

import uuid
from pathlib import Path
from typing import Any

import yaml

from nightkeep.admission.order import Order
from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy, load
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline


def policy(table: Path, **settings: object) -> EffectivePolicy:
    """The policy for a table that no file lists; `settings` are keys of its defaults layer, `_` for `-`.

    In tests Java often compacts beside us.
    """
    text = yaml.safe_dump({"version": 1, "defaults": {"other_managers": "known", **settings}})
    return load("tables.yaml", text=text).effective(f"paimon:{table.absolute()}")


def upgrade(
    table: Path,
    *,
    operation: Operation = Operation.UPGRADE,
    run_id: str | None = None,
    dry_run: bool = False,
    **settings: object,
) -> RunDocument:
    """Plan, rewrite, prove and publish in this process; holds are looked for beside the table, where none are."""
    order = Order(
        operation,
        run_id=run_id or f"test-{uuid.uuid4().hex}",
        reports=str(table.parent / f"{table.name}-reports"),
        dry_run=dry_run,
    )
    return run_operation(policy(table, **settings), order, mapper=lambda: inline)


def optimize(table: Path, **settings: Any) -> RunDocument:
    """The same for a table without deletion vectors, whose files are only merged with each other."""
    return upgrade(table, operation=Operation.OPTIMIZE, **settings)
