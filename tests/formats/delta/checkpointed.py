"""Tables of which a checkpoint of ours is written, and logs that are left with that alone."""

import time
import uuid
from pathlib import Path
from typing import Any

from nightkeep.formats.delta.metadata.head import LogHead, head
from nightkeep.formats.delta.upkeep.checkpointing import WrittenCheckpoint, write_checkpoint
from nightkeep.model import Address, Run
from nightkeep.storage import LocalStorage, Storage


def run_at(now_ms: int | None = None) -> Run:
    return Run("checkpoint-1", "f" * 16, uuid.uuid4().hex[:8], int(time.time() * 1000) if now_ms is None else now_ms)


def head_of(table: Path, version: int | None = None) -> LogHead:
    return head(LocalStorage(str(table)), table=table.name, version=version)


def checkpointed(
    table: Path,
    *,
    storage: Storage | None = None,
    version: int | None = None,
    now_ms: int | None = None,
    **settings: Any,
) -> WrittenCheckpoint | None:
    """A checkpoint of the newest version, or of `version`."""
    store = storage or LocalStorage(str(table))
    address = Address("delta", str(table), table.name)
    return write_checkpoint(address, store, head_of(table, version), run_at(now_ms), **settings)


def alone(table: Path, *, keep_commits: bool = False) -> None:
    """Leave in the log the newest checkpoint, its commit, and what came after it; with `keep_commits`, all commits and
    no checkpoint, if the first commit is still there."""
    log = table / "_delta_log"
    if keep_commits and not (log / f"{0:020d}.json").exists():
        return
    checkpoints = [path for path in log.iterdir() if ".checkpoint." in path.name and not path.name.startswith(".")]
    newest = max((int(path.name[:20]) for path in checkpoints), default=-1)
    for path in [*checkpoints, *log.glob("*.crc"), *log.glob(".*.crc"), *log.glob("*.compacted.json")]:
        if keep_commits or path.suffix == ".crc" or int(path.name[:20]) < newest:
            path.unlink(missing_ok=True)
    if keep_commits:
        for path in [*(log / "_sidecars").glob("*"), log / "_last_checkpoint"]:
            path.unlink(missing_ok=True)
        return
    for path in log.glob("*.json"):
        if path.stem.isdecimal() and int(path.stem) < newest:
            path.unlink()
