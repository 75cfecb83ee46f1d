"""Two versions of a partition -> parts that can be proven side by side. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.formats.iceberg.content_files import ContentFile
from nightkeep.formats.iceberg.metadata import IcebergUnit
from nightkeep.proof_parts import PART_BYTES, proof_parts


def pieces(
    base: IcebergUnit, candidate: IcebergUnit, *, part_bytes: int = PART_BYTES
) -> Sequence[tuple[IcebergUnit, IcebergUnit]]:
    """Parts of about equal size; a data file that both sides have, with whatever deletes, is in one part on both.

    Deletes that speak of one data file are with it, the others in every part: no row's place depends on another
    file's rows, so fingerprints of parts add up to those of the partition.
    """
    sizes = [{file.path: file.bytes for file in unit.files} for unit in (base, candidate)]
    parts = proof_parts(*sizes, part_bytes=part_bytes)
    if len(parts) == 1:
        return ((base, candidate),)
    return tuple((_part(base, part), _part(candidate, part)) for part in parts)


def _part(unit: IcebergUnit, paths: frozenset[str]) -> IcebergUnit:
    files: tuple[ContentFile, ...] = tuple(file for file in unit.files if file.path in paths)
    positional = tuple(each for each in unit.positional if each.referenced is None or each.referenced in paths)
    return replace(unit, files=files, positional=positional)
