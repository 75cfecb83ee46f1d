"""Address and store -> the functions that stage and commit versions of a Paimon table."""

from __future__ import annotations

from nightkeep.errors import MissingFile
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
    places = {(entry["_PARTITION"], entry["_BUCKET"]) for entry in ours.delta_entries}
    if not ours.schema.primary_keys:
        places |= _vector_places(table, storage, run, ours)
    mine = (u.key for u in ours.units if (u.partition_bytes, u.key.bucket) in places)
    parent, why = commit.parent_of(storage, ours)
    return Committed(ours.identity, version - 1, tuple(mine), parent=parent, undermined=why)


def _vector_places(table: Address, storage: Storage, run: Run, ours: PaimonSnapshot) -> set[tuple[object, object]]:
    """Partitions and buckets in which a commit of this run changed vectors: a delete from a table without keys may
    change nothing else. Names of our vector files have the run's token; those of the run's earlier commits are
    distinguished as long as the parent exists."""
    try:
        before = {record["_FILE_NAME"] for record in read_version(table, storage, ours.version - 1).index_records}
    except MissingFile:
        before = set()
    return {
        (record["_PARTITION"], record["_BUCKET"])
        for record in ours.index_records
        if record["_FILE_NAME"] not in before and run.token in str(record["_FILE_NAME"]).split("-")
    }
