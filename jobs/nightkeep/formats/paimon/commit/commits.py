"""Address and store -> the functions that stage and commit versions of a Paimon table."""

from __future__ import annotations

from nightkeep.formats.paimon.commit import commit
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.formats.paimon.metadata.versions import read_version
from nightkeep.model import Address, Committed, Run
from nightkeep.protocol import Bound, Commits
from nightkeep.storage import Storage, delete_each


def commits_of(table: Address, storage: Storage) -> Commits[PaimonSnapshot, BucketEdit]:
    return Commits(
        stage=Bound(commit.stage, storage),
        conflicts=commit.conflicts,
        commit=Bound(commit.commit, storage),
        visible=Bound(commit.visible, storage),
        undermined=Bound(commit.undermined, storage),
        committed=Bound(Bound(committed, table), storage),
        discard=Bound(delete_each, storage),
        rollback=Bound(rollback, table),
    )


def committed(table: Address, storage: Storage, run: Run) -> tuple[Committed, ...]:
    return tuple(_committed(table, storage, run, version) for version in commit.committed(storage, run))


def rollback(table: Address, version: int) -> str:
    """Paimon's Spark procedure. Other engines have a `rollback_to` action with the same arguments."""
    return f"CALL sys.rollback(table => '{table.name}', version => '{version}')"


def _committed(table: Address, storage: Storage, run: Run, version: int) -> Committed:
    ours = read_version(table, storage, version)
    # Vector files alone may have changed. Names of ours have the run's token.
    fresh = (r for r in ours.index_records if run.token in str(r["_FILE_NAME"]).split("-"))
    places = {(entry["_PARTITION"], entry["_BUCKET"]) for entry in (*ours.delta_entries, *fresh)}
    mine = (u.key for u in ours.units if (u.partition_bytes, u.key.bucket) in places)
    parent, why = commit.parent_of(storage, ours)
    return Committed(ours.identity, version - 1, tuple(mine), parent=parent, undermined=why)
