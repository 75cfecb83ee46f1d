"""What a task changes of the metadata of a partition."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.formats.memory.metadata.snapshot import MemoryFile


@dataclass(frozen=True, slots=True)
class MergeEdit:
    """One partition's change. `removed` has the planned files, with deletes, so that a conflict can be seen."""

    removed: tuple[MemoryFile, ...]
    added: tuple[MemoryFile, ...]
