"""Two versions of a partition -> parts that can be proven in parallel. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.gate.proof_parts import PART_BYTES, unit_parts


def pieces(
    base: IcebergUnit, candidate: IcebergUnit, *, part_bytes: int = PART_BYTES
) -> Sequence[tuple[IcebergUnit, IcebergUnit]]:
    """As `unit_parts`. Returns pairs of base and candidate part.

    A delete of one data file is in the part of that file. Position deletes of several data files are in every part.
    Equality deletes are in every part with an older data file. A part has `part_bytes` of data, or as many bytes as the
    deletes that every part must read if those are more: reading them again then takes no longer than reading the data.
    """
    shared = max(_shared_bytes(unit) for unit in (base, candidate))
    bound = max(part_bytes, shared)
    if not candidate.moved:
        return unit_parts(base, candidate, _part, part_bytes=bound)
    # The rows of the base are in files of several partitions. Fingerprints of all parts of a key add up.
    nothing, stays = _emptied(base), replace(candidate, moved=())
    there = [_part(unit, frozenset(file.path for file in unit.files)) for unit in candidate.moved]
    news = (part for unit in there for part in unit_parts(_emptied(unit), unit, _part, part_bytes=bound))
    return (*unit_parts(base, stays, _part, part_bytes=bound), *((nothing, part) for _, part in news))


def _emptied(unit: IcebergUnit) -> IcebergUnit:
    return replace(unit, files=(), positional=(), equality=())


def _shared_bytes(unit: IcebergUnit) -> int:
    """Bytes of deletes that several parts may read. A part's memory does not grow with them."""
    several = (delete for delete in unit.positional if delete.referenced is None)
    return sum(delete.bytes for delete in (*several, *_newer(unit.equality, unit.files)))


def _part(unit: IcebergUnit, paths: frozenset[str]) -> IcebergUnit:
    files = tuple(file for file in unit.files if file.path in paths)
    positional = tuple(each for each in unit.positional if each.referenced is None or each.referenced in paths)
    return replace(unit, files=files, positional=positional, equality=_newer(unit.equality, files))


def _newer(equality: Iterable[ContentFile], files: Iterable[ContentFile]) -> tuple[ContentFile, ...]:
    """Equality deletes that apply to at least one of the data files, by sequence number (spec, "Scan Planning")."""
    oldest = min((file.sequence_number for file in files), default=None)
    return tuple(delete for delete in equality if oldest is not None and oldest < delete.sequence_number)
