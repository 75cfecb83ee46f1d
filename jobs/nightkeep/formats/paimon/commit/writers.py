"""Recent snapshots of a table -> whether we may commit, or would break other writers, or they us."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import newest_first
from nightkeep.model import Request, Writers
from nightkeep.storage import ObjectStorage, Storage, whole_store

WRITER_HISTORY = 20
"""How many recent snapshots are searched for a writer that also compacts."""


def refuse_compacting_writers(storage: Storage, snapshot: PaimonSnapshot, request: Request) -> None:
    """Refuses a table with writers that keep a bucket's levels in memory: our commit would break their next one."""
    if request.allow_compacting_writers:
        return
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for raw in islice(newest_first(storage), WRITER_HISTORY):
        kinds[str(raw["commitUser"])].add(str(raw["commitKind"]))
    for user, user_kinds in kinds.items():
        if {"APPEND", "COMPACT"} <= user_kinds:
            raise RefusedTable(
                snapshot.table.name,
                f"writer {user} also compacts",
                "set write-only = true for writers, or allow it with --allow-compacting-writers",
            )


def refuse_unconditional_writers(storage: Storage, snapshot: PaimonSnapshot, request: Request) -> None:
    """Refuses a table on an object store where Paimon commits without a catalog's lock.

    Such a commit checks that a snapshot does not exist, and then writes it (SnapshotCommit, RenamingSnapshotCommit).
    """
    if isinstance(whole_store(storage), ObjectStorage) and request.writers is not Writers.CONDITIONAL:
        raise RefusedTable(
            snapshot.table.name,
            "Paimon's writers may overwrite commits of others on an object store",
            "if all writers create snapshots by conditional writes, or none writes now, say writers: conditional "
            "in the policy or --writers conditional",
        )
