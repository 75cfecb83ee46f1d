"""Address -> the opened table in memory: the functions of the format's rooms. The smallest format that has a gate."""

from __future__ import annotations

from nightkeep.errors import AddressError
from nightkeep.formats.memory.commit.commits import commits_of
from nightkeep.formats.memory.gate.gate import gate_of
from nightkeep.formats.memory.metadata.pending_changes import MergeEdit
from nightkeep.formats.memory.metadata.snapshot import STORES, MemorySnapshot, MemoryUnit
from nightkeep.formats.memory.metadata.versions import digest, read_staged, read_version
from nightkeep.formats.memory.rewrite.optimize import MergeTask, refuse_sorted, rewrite, worn_files
from nightkeep.model import Address, Operation
from nightkeep.protocol import Bound, OperationRules, Table, units_of

MemoryTable = Table[MemorySnapshot, MemoryUnit, MergeTask, MergeEdit]


def open_table(address: Address) -> MemoryTable:
    """The table at `address.location`. Raises AddressError if this process has none there."""
    if address.location not in STORES:
        raise AddressError(f"{address}: expected a table of this process, found none")
    return table_of(address)


def table_of(address: Address) -> MemoryTable:
    return Table(
        address=address,
        operations={Operation.OPTIMIZE: OperationRules((Bound(refuse_sorted, address),), (worn_files,))},
        snapshot=Bound(read_version, address),
        units=units_of,
        digest=Bound(digest, address),
        staged=Bound(read_staged, address),
        rewrite=Bound(rewrite, address),
        gate=gate_of(address),
        commits=commits_of(address),
    )
