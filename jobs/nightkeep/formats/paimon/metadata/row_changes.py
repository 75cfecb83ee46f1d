"""Intents of our commits that change rows <-> the properties of their snapshots, by which the check knows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nightkeep.encodings.documents import parse_object
from nightkeep.errors import CorruptMetadata
from nightkeep.model import Intent, Operation

DELETED_ROWS: Final = "nightkeep.deleted-rows"
"""The condition on the rows that a commit deletes."""
UPDATED_ROWS: Final = "nightkeep.updated-rows"
"""The condition on the rows that a commit updates."""
SET: Final = "nightkeep.set"
"""What it sets: a JSON object of expressions in Spark SQL, by column."""


@dataclass(frozen=True, slots=True)
class StatedChange:
    """The rows for which `condition` is true are deleted, or, with `sets`, updated: expressions by column."""

    condition: str
    sets: Mapping[str, str] = field(default_factory=dict)


def row_change(raw: Mapping[str, object]) -> StatedChange | None:
    """The change that a snapshot's JSON states of its own commit; None of any other commit. Raises CorruptMetadata."""
    properties = raw.get("properties")
    if not isinstance(properties, Mapping) or raw["commitKind"] != "OVERWRITE":
        return None
    deleted, updated = properties.get(DELETED_ROWS), properties.get(UPDATED_ROWS)
    if isinstance(updated, str):
        return StatedChange(updated, _sets(properties.get(SET)))
    return StatedChange(deleted) if isinstance(deleted, str) else None


def stated_changes(intents: Sequence[Intent]) -> dict[str, object]:
    """What the snapshot of a commit states of its change of rows. Java commits such as OVERWRITE, for its readers of
    changes. The intents of one commit are equal."""
    changes = {intent for intent in intents if intent.operation in (Operation.DELETE, Operation.UPDATE)}
    if not changes:
        return {}
    (intent,) = changes
    if intent.operation is Operation.DELETE:
        properties = {DELETED_ROWS: intent.where}
    else:
        properties = {UPDATED_ROWS: intent.where, SET: json.dumps(dict(intent.sets))}
    return {"commitKind": "OVERWRITE", "operation": intent.operation.name, "properties": properties}


def _sets(text: object) -> Mapping[str, str]:
    subject = f"property {SET}"
    found = parse_object(str(text).encode(), subject=subject)
    if not found or not all(isinstance(value, str) for value in found.values()):
        raise CorruptMetadata(subject, "an expression for each column", f"{text!r:.80}")
    return {name: str(value) for name, value in found.items()}
