"""Recent commits of a table on S3 -> whether we may commit. Without exclusive creates, commits overwrite each other.

delta-spark's S3SingleDriverLogStore, its default for s3a, checks that a version does not exist and then writes it
(delta-storage, io.delta.storage). Its stores for Azure and Google Cloud create exclusively, and so does delta-rs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from nightkeep.errors import MissingFile, RefusedTable
from nightkeep.formats.delta.metadata.actions import parse_lines
from nightkeep.formats.delta.metadata.log_segment import commits_newest_first
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.model import Request, Writers
from nightkeep.storage import Storage
from nightkeep.storage.objects.store import ObjectStorage

HISTORY: Final = 20
"""How many recent commits are read. A writer of none of them is assumed to have stopped."""
_EXCLUSIVE: Final = ("Nightkeep/", "delta-rs")


def refuse_writers(storage: Storage, snapshot: DeltaSnapshot, request: Request) -> None:
    """Refuses a table with writers that could overwrite our commit, unless the policy vouches for them."""
    is_s3 = isinstance(storage, ObjectStorage) and storage.root.startswith("s3:")
    if not is_s3 or request.writers is Writers.CONDITIONAL:
        return
    for version, author in _authors(storage):
        if not author.startswith(_EXCLUSIVE):
            raise RefusedTable(
                snapshot.table.name,
                f"version {version} was committed by {author}, which may overwrite commits of others on S3",
                "if all writers create commits by conditional writes, set writers: conditional in the policy or "
                "--writers conditional",
            )


def _authors(storage: Storage) -> Iterator[tuple[int, str]]:
    """Version and writer's name of the newest commits, newest first."""
    for version, name in islice(commits_newest_first(storage), HISTORY):
        try:
            actions = list(parse_lines(storage.read(name), subject=name))
        except MissingFile:
            continue
        info = next((body for kind, body in actions if kind == "commitInfo"), {})
        yield version, str(info.get("engineInfo") or info.get("clientVersion") or "an engine without a name")
