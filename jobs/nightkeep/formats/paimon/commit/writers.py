"""Recent snapshots of a table -> whether we may commit, or would break other writers, or they us."""

from __future__ import annotations

from itertools import islice

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import newest_first
from nightkeep.model import Request, Writers
from nightkeep.model.run_names import COMMIT_USER
from nightkeep.storage import Storage, whole_store
from nightkeep.storage.objects.store import ObjectStorage

WRITER_HISTORY = 20
"""How many recent snapshots are searched for others that compact."""
_BY_HAND = 1
"""So many compactions by others after one of ours may be somebody's hand; more are a job."""


def refuse_compactions_by_others(storage: Storage, snapshot: PaimonSnapshot, request: Request) -> None:
    """Refuses a table with writers that compact, or with a compaction job that goes on beside ours.

    Such writers keep a bucket's levels in memory: our commit would break their next one. A job and we would rewrite the
    same files, and one of the two commits would be lost. Compactions before our first one are of the time before us.
    """
    if request.allow_compacting_writers and request.other_managers_known:
        return
    history = [
        (str(raw["commitUser"]), str(raw["commitKind"])) for raw in islice(newest_first(storage), WRITER_HISTORY)
    ]
    appending = {user for user, kind in history if kind == "APPEND"}
    both = [user for user, kind in history if kind == "COMPACT" and user in appending]
    if both and not request.allow_compacting_writers:
        raise RefusedTable(
            snapshot.table.name,
            f"writer {both[0]} also compacts",
            "set write-only = true for writers, or allow it with --allow-compacting-writers",
        )
    compactions = [place for place, (user, kind) in enumerate(history) if kind == "COMPACT" and _is_ours(user)]
    ours = compactions[-1] if compactions else 0
    job = [user for user, kind in history[:ours] if kind == "COMPACT" and user not in appending and not _is_ours(user)]
    if len(job) > _BY_HAND and not request.other_managers_known:
        raise RefusedTable(
            snapshot.table.name,
            f"it is managed by a compaction job as well ({job[0]} compacts beside us, {len(job)} of the last {ours} "
            "snapshots)",
            "turn that off, or set other_managers: known in the policy",
        )


def _is_ours(user: str) -> bool:
    return user.startswith(COMMIT_USER)


def refuse_unconditional_writers(storage: Storage, snapshot: PaimonSnapshot, request: Request) -> None:
    """Refuses a table on an object store where Paimon commits without a catalog's lock.

    Such a commit checks that a snapshot does not exist, and then writes it (SnapshotCommit, RenamingSnapshotCommit).
    """
    if isinstance(whole_store(storage), ObjectStorage) and request.writers is not Writers.CONDITIONAL:
        raise RefusedTable(
            snapshot.table.name,
            "Paimon's writers may overwrite commits of others on an object store",
            "if all writers create snapshots by conditional writes, or none writes now, set writers: conditional "
            "in the policy or --writers conditional",
        )
