"""Address and store -> the functions that stage and commit versions of a Delta table."""

from __future__ import annotations

from nightkeep.formats.delta.commit import commit
from nightkeep.formats.delta.metadata.log_state import digest
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load
from nightkeep.model import Address, Committed, Run, VersionIdentity
from nightkeep.protocol import Bound, Commits
from nightkeep.storage import Storage, delete_each


def commits_of(table: Address, storage: Storage) -> Commits[DeltaSnapshot, DeltaEdit]:
    return Commits(
        stage=Bound(commit.stage, storage),
        conflicts=commit.conflicts,
        commit=Bound(commit.commit, storage),
        visible=Bound(commit.visible, storage),
        undermined=Bound(commit.undermined, storage),
        committed=Bound(Bound(committed, table), storage),
        discard=Bound(delete_each, storage),
        rollback=Bound(rollback, storage),
    )


def committed(table: Address, storage: Storage, run: Run) -> tuple[Committed, ...]:
    versions = commit.committed(storage, run)
    # All commits of a run have one schema: a schema change in between is a conflict.
    schema = load(table, storage, versions[-1]).schema if versions else None
    return tuple(
        Committed(
            VersionIdentity(version, digest(storage, version) or ""),
            version - 1,
            commit.units_of(storage, schema, version),
            parent=_known(storage, version - 1),
        )
        for version in versions
        if schema
    )


def rollback(storage: Storage, version: int) -> str:
    # Backticks are doubled within a quoted name. The whole path is one quoted name.
    location = storage.root.replace("`", "``")
    return f"RESTORE TABLE delta.`{location}` TO VERSION AS OF {version}"


def _known(storage: Storage, version: int) -> VersionIdentity | None:
    commit_digest = digest(storage, version)
    return None if commit_digest is None else VersionIdentity(version, commit_digest)
