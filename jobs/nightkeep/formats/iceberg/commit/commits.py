"""Address and catalog's table -> the functions that stage and commit versions of an Iceberg table."""

from __future__ import annotations

from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.commit import commit
from nightkeep.formats.iceberg.commit.conflicts import conflicts
from nightkeep.formats.iceberg.metadata.branches import location_and_branch
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import MAIN
from nightkeep.formats.iceberg.metadata.versions import digest, read_version
from nightkeep.model import Address, Candidate, Committed, Run, VersionIdentity
from nightkeep.model.dotted import quoted_part, split_name
from nightkeep.model.metastore_table import catalog_and_name
from nightkeep.protocol import Bound, Commits
from nightkeep.storage import delete_each


def commits_of(table: Address, handle: TableHandle) -> Commits[IcebergSnapshot, IcebergEdit]:
    storage = handle.storage
    return Commits(
        stage=Bound(commit.stage, storage),
        conflicts=Bound(conflicts, storage),
        commit=Bound(commit.commit, handle),
        visible=Bound(visible, handle),
        undermined=undermined,
        committed=Bound(Bound(committed, table), handle),
        discard=Bound(delete_each, storage),
        rollback=Bound(rollback, table),
    )


def visible(handle: TableHandle, candidate: Candidate) -> bool:
    return handle.visible(candidate.version)


def undermined(candidate: Candidate) -> str | None:
    """Always None: the catalog commits only if main still points to the snapshot that the commit was staged on."""
    return None


def committed(table: Address, handle: TableHandle, run: Run) -> tuple[Committed, ...]:
    versions = commit.committed(handle, run)
    return tuple(
        Committed(ours.identity, parent, commit.units_of(handle.storage, ours), parent=_known(handle, parent))
        for ours, parent in ((read_version(table, handle, version), parent) for version, parent in versions)
    )


def rollback(table: Address, version: int) -> str:
    """The rollback procedure of iceberg-spark, of a branch its statement; names are quoted by backticks where they need
    it."""
    place, branch = location_and_branch(table.location)
    catalog, name = catalog_and_name(place)
    quoted = ".".join(map(quoted_part, split_name(name)))
    if branch != MAIN:
        return f"ALTER TABLE `{catalog}`.{quoted} REPLACE BRANCH {quoted_part(branch)} AS OF VERSION {version}"
    text = quoted.replace("\\", "\\\\").replace("'", "\\'")
    return f"CALL `{catalog}`.system.rollback_to_snapshot('{text}', {version})"


def _known(handle: TableHandle, version: int) -> VersionIdentity | None:
    commit_digest = digest(handle, version)
    return None if commit_digest is None else VersionIdentity(version, commit_digest)
