"""An address -> snapshots, rewrites, candidates, commits of a table in memory. The smallest format that has every verb.

Everything is decoded from the store's bytes, so the gate proves what a reader would find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightkeep.errors import AddressError
from nightkeep.formats.memory.commit.commits import commits_of
from nightkeep.formats.memory.gate.gate import gate_of
from nightkeep.formats.memory.metadata.pending_changes import MergeEdit
from nightkeep.formats.memory.metadata.snapshot import (
    STORES,
    MemoryFile,
    MemorySnapshot,
    MemoryUnit,
    Store,
    to_ipc,
)
from nightkeep.formats.memory.metadata.versions import digest, read_staged, read_version
from nightkeep.formats.memory.rewrite.optimize import MergeTask, merged, refuse_sorted, worn_files
from nightkeep.model import Address, Candidate, Operation, Rewrite, Run, TaskCost, UnitKey
from nightkeep.model.run_names import unit_token
from nightkeep.protocol import Commits, Gate, OperationRules

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
        return read_version(self.address, version, read_as=read_as)

    def staged(self, candidate: Candidate) -> MemorySnapshot:
        return read_staged(self.address, candidate)

    def units(self, snapshot: MemorySnapshot) -> Sequence[MemoryUnit]:
        return snapshot.units

    def digest(self, version: int) -> str | None:
        return digest(self.address, version)

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

    @property
    def commits(self) -> Commits[MemorySnapshot, MergeEdit]:
        return commits_of(self.address)

    @property
    def retention(self) -> None:
        return None

    def figures(
        self, before: MemorySnapshot, after: MemorySnapshot, touched: Sequence[UnitKey]
    ) -> Mapping[str, object]:
        return {}


def open_table(address: Address) -> MemoryTable:
    """The table at `address.location`. Raises AddressError if this process has none there."""
    if address.location not in STORES:
        raise AddressError(f"{address}: expected a table of this process, found none")
    return MemoryTable(address)
