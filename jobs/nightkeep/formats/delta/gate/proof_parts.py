"""Two versions of a partition -> parts that can be proven side by side. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.gate.proof_parts import PART_BYTES, unit_parts


def pieces(
    base: DeltaUnit, candidate: DeltaUnit, *, part_bytes: int = PART_BYTES
) -> Sequence[tuple[DeltaUnit, DeltaUnit]]:
    """The pairs of parts, as `unit_parts` makes them. A file stays with its vector."""
    return unit_parts(base, candidate, _part, part_bytes=part_bytes)


def _part(unit: DeltaUnit, paths: frozenset[str]) -> DeltaUnit:
    files: tuple[DeltaDataFile, ...] = tuple(file for file in unit.files if file.path in paths)
    return replace(unit, files=files)
