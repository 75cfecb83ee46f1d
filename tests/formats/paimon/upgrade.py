"""A table's folder -> one upgrade by Nightkeep, without Spark -> the document of the run."""

import uuid
from pathlib import Path

import yaml

from nightkeep.model import Operation
from nightkeep.policy import EffectivePolicy, load
from nightkeep.reports import RunDocument
from nightkeep.running.run_operation import RunOrder, run_operation
from nightkeep.tasks import inline


def policy(table: Path, **settings: object) -> EffectivePolicy:
    """The policy for a table that no file lists; `settings` are keys of its defaults layer, `_` for `-`."""
    text = yaml.safe_dump({"version": 1, "defaults": settings})
    return load("tables.yaml", text=text).effective(f"paimon:{table.absolute()}")


def upgrade(table: Path, *, run_id: str | None = None, dry_run: bool = False, **settings: object) -> RunDocument:
    """Plan, rewrite, prove and publish in this process; holds are looked for beside the table, where none are."""
    order = RunOrder(
        Operation.UPGRADE,
        run_id=run_id or f"test-{uuid.uuid4().hex}",
        reports=str(table.parent / f"{table.name}-reports"),
        dry_run=dry_run,
    )
    return run_operation(policy(table, **settings), order, mapper=lambda: inline)
