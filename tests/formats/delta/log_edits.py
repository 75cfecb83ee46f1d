"""Changes of a Delta log as another writer would have written it. Checksums go: they are of what was there before."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[dict[str, Any]], Any]


def rewrite_log(table: Path, change: Change, commits: str = "*.json") -> None:
    """Changes every action in place. Checksums of Hadoop's and of the log's are removed."""
    log = table / "_delta_log"
    for path in log.glob(commits):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            change(action)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for path in list(log.glob("*.crc")):
        path.unlink()


def rewrite_adds(table: Path, change: Change) -> None:
    """Changes every add in place."""
    rewrite_log(table, lambda action: change(action["add"]) if "add" in action else None)
