"""Two versions of a partition -> parts that can be proven side by side. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.formats.iceberg.content_files import ContentFile
from nightkeep.formats.iceberg.metadata import IcebergUnit

PART_BYTES = 256 << 20
"""Of one side. A proof task costs about 0.1 s besides its reading, which for this much takes several seconds."""


def pieces(
    base: IcebergUnit, candidate: IcebergUnit, *, part_bytes: int = PART_BYTES
) -> Sequence[tuple[IcebergUnit, IcebergUnit]]:
    """Parts of about equal size; a data file that both sides have, with whatever deletes, is in one part on both.

    Deletes that speak of one data file are with it, the others in every part: no row's place depends on another
    file's rows, so fingerprints of parts add up to those of the partition.
    """
    sides = [{file.path: file for file in unit.files} for unit in (base, candidate)]
    weights = {path: max(side[path].bytes for side in sides if path in side) for path in sides[0] | sides[1]}
    count = -(-max(sum(file.bytes for file in side.values()) for side in sides) // part_bytes)
    parts: list[list[str]] = [[] for _ in range(min(max(count, 1), max(len(weights), 1)))]
    loads = [0] * len(parts)
    for path in sorted(weights, key=lambda path: (-weights[path], path)):
        lightest = loads.index(min(loads))
        parts[lightest].append(path)
        loads[lightest] += weights[path]
    if len(parts) == 1:
        return ((base, candidate),)
    return tuple((_part(base, part), _part(candidate, part)) for part in map(frozenset, parts))


def _part(unit: IcebergUnit, paths: frozenset[str]) -> IcebergUnit:
    files: tuple[ContentFile, ...] = tuple(file for file in unit.files if file.path in paths)
    positional = tuple(each for each in unit.positional if each.referenced is None or each.referenced in paths)
    return replace(unit, files=files, positional=positional)
