"""An address -> snapshots, rewrites, candidates, commits of a table in memory. The smallest format that has every verb.

Everything is decoded from the store's bytes, so the gate proves what a reader would find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nightkeep.errors import AddressError, RefusedTable
from nightkeep.formats.memory.gate.gate import gate_of
from nightkeep.formats.memory.metadata.snapshot import (
    STORES,
    MemoryFile,
    MemorySnapshot,
    MemoryUnit,
    Store,
    decode,
    encode,
    to_ipc,
)
from nightkeep.formats.memory.rewrite.optimize import SORTED, MergeEdit, MergeTask, merged, refuse_sorted, worn_files
from nightkeep.model import Address, Candidate, Committed, Operation, Rewrite, Run, TaskCost, UnitKey
from nightkeep.model.run_names import commit_user, unit_token
from nightkeep.protocol import Gate, OperationRules

_NO_COST = TaskCost(0.0, 0.0, 0, "")


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """An opened table. It holds only its address, so every answer comes from the store."""

    address: Address

    @property
    def store(self) -> Store:
        return STORES[self.address.location]

    @property
    def operations(self) -> Mapping[Operation, OperationRules[MemorySnapshot, MemoryUnit, MergeTask]]:
        return {Operation.OPTIMIZE: OperationRules((refuse_sorted(self.address.name),), (worn_files,))}

    def snapshot(self, version: int | None = None, *, read_as: MemorySnapshot | None = None) -> MemorySnapshot:
        """The snapshot of a version, by default the latest one listed. `read_as` is ignored: columns never change."""
        snapshot = self._load(f"version-{max(self._versions()) if version is None else version}.json")
        unknown = set(snapshot.features) - {SORTED}
        if unknown:
            feature = f"feature {', '.join(sorted(unknown))} is not handled"
            raise RefusedTable(self.address.name, feature, "leave the table to its engine")
        return snapshot

    def staged(self, candidate: Candidate) -> MemorySnapshot:
        """The snapshot of a staged version. Decoded by the same code as a published version, so both are read alike."""
        return self._load(candidate.metadata)

    def units(self, snapshot: MemorySnapshot) -> Sequence[MemoryUnit]:
        return snapshot.units

    def digest(self, version: int) -> str | None:
        """The digest of a version, None if it does not exist. Numbers have no gaps: newer versions are built on it."""
        if version not in self._versions():
            return None
        return self._load(f"version-{version}.json").identity.commit

    @property
    def gate(self) -> Gate[MemorySnapshot, MemoryUnit]:
        return gate_of(self.address)

    def rewrite(self, task: MergeTask, run: Run) -> Rewrite[MergeEdit]:
        """Do one task: one new file, or none if every row is deleted. The file's name is unique to this attempt."""
        rows, unit = merged(self.store, task), unit_token(task.key)
        added: tuple[MemoryFile, ...] = ()
        if rows.num_rows:
            data = to_ipc(rows)
            added = (MemoryFile(f"data-{run.token}-{unit}-{run.attempt}.arrow", rows.num_rows, len(data)),)
            self.store.put(added[0].name, data)
        outputs = tuple(file.name for file in added)
        return Rewrite(task.key, MergeEdit(task.inputs, added), outputs, rows.num_rows, 0, (), _NO_COST)

    def stage(self, parent: MemorySnapshot, rewrites: Sequence[Rewrite[MergeEdit]], run: Run) -> Candidate:
        """Write the version after `parent` with the edits. A partition without rows stays, so that it can be proven."""
        edits = {rewrite.key: rewrite.edit for rewrite in rewrites}
        name, version = f"staged-{run.token}-{run.attempt}.json", parent.version + 1
        after = replace(
            parent, version=version, by=self.commit_user(run.token), staged_as=name,
            rows=parent.rows + sum(_live(edit.added) - _live(edit.removed) for edit in edits.values()),
            units=tuple(_edited(unit, edits[unit.key]) if unit.key in edits else unit for unit in parent.units),
        )  # fmt: skip
        self.store.put(name, encode(after))
        outputs = [output for rewrite in rewrites for output in rewrite.outputs]
        return Candidate(self.address, version, parent.identity, name, (*outputs, name), tuple(edits))

    def conflicts(
        self, planned: MemorySnapshot, head: MemorySnapshot, rewrites: Sequence[Rewrite[MergeEdit]]
    ) -> tuple[tuple[UnitKey, str], ...]:
        """Units of which an input is gone or has more deleted rows. Files that others added are no conflict."""
        held = {key: frozenset(unit.files) for key, unit in head.by_key.items()}
        lost = {r.key: set(r.edit.removed) - held.get(r.key, frozenset()) for r in rewrites}
        return tuple(
            (key, f"inputs changed: {', '.join(sorted(file.name for file in files))}")
            for key, files in lost.items()
            if files
        )

    def commit(self, candidate: Candidate) -> bool:
        """Publish the candidate in one atomic step. False if the version exists or the parent was replaced."""
        parent = candidate.parent
        if candidate.version in self._versions() or self.digest(parent.version) != parent.commit:
            return False
        won = self.store.put_if_absent(f"version-{candidate.version}.json", self.store.read(candidate.metadata))
        if won:
            self.discard([candidate.metadata])
        return won

    def visible(self, candidate: Candidate) -> bool:
        """Whether the candidate was published; for use after a lost answer. Its staged name is unique."""
        if candidate.version not in self._versions():
            return False
        return self._load(f"version-{candidate.version}.json").staged_as == candidate.metadata

    def undermined(self, candidate: Candidate) -> str | None:
        """Why the parent is not sound, None if it is. Versions in memory never expire, so a missing one was removed."""
        identity = self.digest(candidate.parent_version)
        if identity == candidate.parent.commit or not self.visible(candidate):
            return None
        state = "gone" if identity is None else "another"
        return f"version {candidate.parent_version}, which it was staged on, is {state}"

    def committed(self, run: Run) -> tuple[Committed, ...]:
        """The run's commits. Its attempts share one name. The units are those that differ from the version before."""
        by = self.commit_user(run.token)
        return tuple(
            self._committed(snapshot) for snapshot in map(self.snapshot, sorted(self._versions())) if snapshot.by == by
        )

    def figures(
        self, before: MemorySnapshot, after: MemorySnapshot, touched: Sequence[UnitKey]
    ) -> Mapping[str, object]:
        return {}

    def commit_user(self, token: str) -> str:
        return commit_user(token)

    def go_back(self, version: int) -> str:
        return f"restore {self.address.name} to version {version}"

    def discard(self, names: Sequence[str]) -> None:
        """Delete files. Missing names are ignored, because a retry discards again."""
        for name in names:
            self.store.files.pop(name, None)

    def _committed(self, snapshot: MemorySnapshot) -> Committed:
        before = self.snapshot(snapshot.version - 1)
        mine = tuple(unit.key for unit in snapshot.units if unit != before.by_key[unit.key])
        return Committed(snapshot.identity, before.version, mine, parent=before.identity)

    def _versions(self) -> set[int]:
        names = [name for name in self.store.files if name.startswith("version-")]
        return {int(name.removeprefix("version-").removesuffix(".json")) for name in names}

    def _load(self, name: str) -> MemorySnapshot:
        return decode(self.store.read(name), subject=f"{self.address.name}: {name}")


def open_table(address: Address) -> MemoryTable:
    """The table at `address.location`. Raises AddressError if this process has none there."""
    if address.location not in STORES:
        raise AddressError(f"{address}: expected a table of this process, found none")
    return MemoryTable(address)


def _edited(unit: MemoryUnit, edit: MergeEdit) -> MemoryUnit:
    kept = tuple(file for file in unit.files if file not in edit.removed)
    return replace(unit, files=(*kept, *edit.added))


def _live(files: Sequence[MemoryFile]) -> int:
    return sum(file.live_rows for file in files)
