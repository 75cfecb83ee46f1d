"""Two versions of a partition -> parts that can be proven side by side. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.formats.delta.metadata.snapshot import DataFile, DeltaUnit
from nightkeep.gate.proof_parts import PART_BYTES, proof_parts


def pieces(
    base: DeltaUnit, candidate: DeltaUnit, *, part_bytes: int = PART_BYTES
) -> Sequence[tuple[DeltaUnit, DeltaUnit]]:
    """Parts of about equal size; a file that both sides have, with whatever vector, is in one part on both.

    No row's place depends on another file, so fingerprints of parts add up to those of the partition.
    """
    sizes = [{file.path: file.bytes for file in unit.files} for unit in (base, candidate)]
    parts = proof_parts(*sizes, part_bytes=part_bytes)
    return tuple((_part(base, part), _part(candidate, part)) for part in parts)


def _part(unit: DeltaUnit, paths: frozenset[str]) -> DeltaUnit:
    files: tuple[DataFile, ...] = tuple(file for file in unit.files if file.path in paths)
    return replace(unit, files=files)
