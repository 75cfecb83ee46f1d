"""A staged commit of a table with clustering columns -> faults: whose files are replaced, and what new ones state.

PROTOCOL.md, "Writer Requirements for Clustered Table". Whether statistics are right is another audit's; here they must
be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from nightkeep.formats.delta.metadata.actions import parse_object
from nightkeep.formats.delta.metadata.clustering import PROVIDER, is_of_others, provider_of
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import DeltaLeaf, leaves
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot


def clustering_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    """Faults of a commit of ours. A file whose rows are all deleted may go, whoever clustered it."""
    if not candidate.schema.clustering or not candidate.actions:
        return
    before, after = (_by_path(side) for side in (parent, candidate))
    for path, file in before.items():
        has_rows = file.rows is None or file.deleted_rows < file.rows
        if path not in after and has_rows and not candidate.changes_rows and is_of_others(file):
            yield f"{file.name}: removed, though {provider_of(file)} clustered it, expected it to be left to that"
    columns = [leaf for leaf in leaves(candidate.schema) if leaf.stored in candidate.schema.clustering]
    for path, file in after.items():
        if path not in before:
            if provider_of(file) != PROVIDER:
                yield f"{file.name}: clustering provider {provider_of(file)}, expected {PROVIDER}"
            yield from (fault for leaf in columns for fault in _missing(file, leaf))


def _by_path(side: DeltaSnapshot) -> Mapping[str, DeltaDataFile]:
    return {file.path: file for unit in side.units for file in unit.files}


def _missing(file: DeltaDataFile, leaf: DeltaLeaf) -> Iterator[str]:
    """Statistics of a clustering column that the file lacks.

    Of some values no writer states bounds: texts that are no Unicode, NaN, times that Python has not.
    """
    stats = parse_object(file.stats or "{}", subject=f"statistics of {file.path}")
    nulls = _at(stats.get("nullCount"), leaf)
    has_bounds = pa.types.is_integer(leaf.type) or pa.types.is_decimal(leaf.type)
    groups = ("minValues", "maxValues") if has_bounds and nulls != file.rows else ()
    missing = [group for group in groups if _at(stats.get(group), leaf) is None]
    missing += ["nullCount"] if nulls is None else []
    if missing:
        yield f"{file.name}: no {', '.join(missing)} of the clustering column {'.'.join(leaf.path)}"


def _at(values: object, leaf: DeltaLeaf) -> object:
    for name in leaf.stored:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values
