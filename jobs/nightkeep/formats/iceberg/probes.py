"""A unit's equality deletes x its data files -> which keys must be looked for in which files. Metadata only.

Iceberg table spec, "Scan Planning": equality deletes hold for data of a smaller sequence number. All that a unit has
are in its scope already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nightkeep.formats.iceberg.content_files import ContentFile
from nightkeep.formats.iceberg.key_bounds import Span, may_match, spans
from nightkeep.formats.iceberg.metadata import IcebergUnit
from nightkeep.formats.iceberg.schema import TableSchema


@dataclass(frozen=True, slots=True)
class Probe:
    """Equality deletes over the same columns, and the data files that may have rows of them.

    `field_ids` are ascending. `pairs` are data files, each with the deletes that may match in it, at least one.
    """

    field_ids: tuple[int, ...]
    pairs: tuple[tuple[ContentFile, tuple[ContentFile, ...]], ...]

    @property
    def files(self) -> tuple[ContentFile, ...]:
        return tuple(file for file, _ in self.pairs)

    @property
    def deletes(self) -> tuple[ContentFile, ...]:
        """Each once, by sequence number."""
        found = {delete.identity: delete for _, held in self.pairs for delete in held}
        return tuple(sorted(found.values(), key=lambda delete: (delete.sequence_number, delete.path)))


def probes(unit: IcebergUnit, files: Iterable[ContentFile]) -> tuple[Probe, ...]:
    """One for each set of columns by which rows of these files may be deleted."""
    deletes: dict[tuple[int, ...], list[ContentFile]] = {}
    for delete in unit.equality:
        deletes.setdefault(tuple(sorted(delete.equality_ids)), []).append(delete)
    held = tuple(files)
    found = (_probe(unit.schema, field_ids, deletes[field_ids], held) for field_ids in sorted(deletes))
    return tuple(probe for probe in found if probe.pairs)


def probes_within(found: Iterable[Probe], paths: frozenset[str]) -> tuple[Probe, ...]:
    """The parts of probes that are for these data files."""
    parts = (Probe(each.field_ids, tuple(pair for pair in each.pairs if pair[0].path in paths)) for each in found)
    return tuple(part for part in parts if part.pairs)


def key_bytes(file: ContentFile, field_ids: Sequence[int]) -> int:
    """What columns take in a file, by its manifest; a file without sizes counts as a whole."""
    told = file.raw.get("column_sizes")
    if not isinstance(told, Mapping):
        return file.bytes
    return sum(size for number in field_ids if isinstance(size := told.get(number), int))


def _probe(
    schema: TableSchema, field_ids: tuple[int, ...], deletes: Sequence[ContentFile], files: Sequence[ContentFile]
) -> Probe:
    deleted = [(delete, spans(schema, delete, field_ids)) for delete in deletes]
    pairs = ((file, _matching(deleted, file, spans(schema, file, field_ids))) for file in files)
    return Probe(field_ids, tuple(pair for pair in pairs if pair[1]))


def _matching(
    deleted: Sequence[tuple[ContentFile, Sequence[Span]]], file: ContentFile, held: Sequence[Span]
) -> tuple[ContentFile, ...]:
    return tuple(
        delete for delete, keys in deleted if delete.sequence_number > file.sequence_number and may_match(keys, held)
    )
