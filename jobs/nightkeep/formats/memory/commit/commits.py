"""Address -> the functions that stage and commit versions of a table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.formats.memory.metadata.pending_changes import MergeEdit
from nightkeep.formats.memory.metadata.snapshot import MemoryFile, MemorySnapshot, MemoryUnit, encode
from nightkeep.formats.memory.metadata.versions import (
    digest,
    read_named,
    read_version,
    store_of,
    version_name,
    versions,
)
from nightkeep.model import Address, Candidate, Committed, Rewrite, Run, UnitKey
from nightkeep.model.run_names import committer
from nightkeep.protocol import Bound, Commits


def commits_of(table: Address) -> Commits[MemorySnapshot, MergeEdit]:
    return Commits(
        stage=Bound(stage, table),
        conflicts=conflicts,
        commit=Bound(commit, table),
        visible=Bound(visible, table),
        undermined=Bound(undermined, table),
        committed=Bound(committed, table),
        discard=Bound(discard, table),
        rollback=Bound(rollback, table),
    )


def stage(table: Address, parent: MemorySnapshot, rewrites: Sequence[Rewrite[MergeEdit]], run: Run) -> Candidate:
    """Write the version after `parent` with the edits. A partition without rows stays, so that it can be proven."""
    edits = {rewrite.key: rewrite.edit for rewrite in rewrites}
    name, version = f"staged-{run.token}-{run.attempt}.json", parent.version + 1
    after = replace(
        parent,
        version=version,
        by=committer(run),
        staged_as=name,
        rows=parent.rows + sum(_live(edit.added) - _live(edit.removed) for edit in edits.values()),
        units=tuple(_edited(unit, edits[unit.key]) if unit.key in edits else unit for unit in parent.units),
    )
    store_of(table).put(name, encode(after))
    outputs = [output for rewrite in rewrites for output in rewrite.outputs]
    return Candidate(table, version, parent.identity, name, (*outputs, name), tuple(edits))


def conflicts(
    planned: MemorySnapshot, head: MemorySnapshot, rewrites: Sequence[Rewrite[MergeEdit]]
) -> tuple[tuple[UnitKey, str], ...]:
    """Units of which an input is gone or has more deleted rows. Files that others added are no conflict."""
    held = {key: frozenset(unit.files) for key, unit in head.by_key.items()}
    lost = {r.key: set(r.edit.removed) - held.get(r.key, frozenset()) for r in rewrites}
    return tuple(
        (key, f"inputs changed: {', '.join(sorted(file.name for file in files))}")
        for key, files in lost.items()
        if files
    )


def commit(table: Address, candidate: Candidate) -> bool:
    """Publish the candidate in one atomic step. False if the version exists or the parent was replaced."""
    parent, store = candidate.parent, store_of(table)
    if candidate.version in versions(table) or digest(table, parent.version) != parent.commit:
        return False
    won = store.put_if_absent(version_name(candidate.version), store.read(candidate.metadata))
    if won:
        discard(table, [candidate.metadata])
    return won


def visible(table: Address, candidate: Candidate) -> bool:
    """Whether the candidate was published; for use after a lost answer. Its staged name is unique."""
    if candidate.version not in versions(table):
        return False
    return read_named(table, version_name(candidate.version)).staged_as == candidate.metadata


def undermined(table: Address, candidate: Candidate) -> str | None:
    """Why the parent is not sound, None if it is. Versions in memory never expire, so a missing one was removed."""
    identity = digest(table, candidate.parent_version)
    if identity == candidate.parent.commit or not visible(table, candidate):
        return None
    state = "gone" if identity is None else "another"
    return f"version {candidate.parent_version}, which it was staged on, is {state}"


def committed(table: Address, run: Run) -> tuple[Committed, ...]:
    """The run's commits. Its attempts share one name. The units are those that differ from the version before."""
    every = (read_version(table, version) for version in sorted(versions(table)))
    return tuple(_committed(table, snapshot) for snapshot in every if snapshot.by == committer(run))


def discard(table: Address, names: Sequence[str]) -> None:
    for name in names:
        store_of(table).files.pop(name, None)


def rollback(table: Address, version: int) -> str:
    return f"restore {table.name} to version {version}"


def _committed(table: Address, snapshot: MemorySnapshot) -> Committed:
    before = read_version(table, snapshot.version - 1)
    mine = tuple(unit.key for unit in snapshot.units if unit != before.by_key[unit.key])
    return Committed(snapshot.identity, before.version, mine, parent=before.identity)


def _edited(unit: MemoryUnit, edit: MergeEdit) -> MemoryUnit:
    kept = tuple(file for file in unit.files if file not in edit.removed)
    return replace(unit, files=(*kept, *edit.added))


def _live(files: Sequence[MemoryFile]) -> int:
    return sum(file.live_rows for file in files)
