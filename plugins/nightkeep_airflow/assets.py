"""The asset of a table: an event for every verified commit, for DAGs that are scheduled on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

# Mapped tasks share one declaration, so each table's asset is reached through this alias when it is emitted.
VERIFIED = AssetAlias("nightkeep-verified")


def table_asset(table: str) -> Asset:
    """The asset of a table, to schedule on; it has an event for every verified commit and no other."""
    return Asset(name=f"nightkeep/{table}", uri=f"x-nightkeep://tables/{quote(table, safe='')}")


def emit(events: Any, table: str, documents: Sequence[str]) -> None:
    """Add the event of a verified table to those of a task, which are there once it succeeds."""
    events[VERIFIED].add(table_asset(table), extra={"documents": list(documents)})
