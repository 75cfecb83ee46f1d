"""A staged commit of a table with clustering columns -> faults: whose files are replaced, and what new ones state.

PROTOCOL.md, "Writer Requirements for Clustered Table". Whether statistics are right is another audit's; here they must
be there, for columns of every type that has bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Final

from nightkeep.formats.delta.metadata.actions import parse_object
from nightkeep.formats.delta.metadata.clustering import PROVIDER, is_of_others, provider_of
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import DeltaLeaf, leaves, whole_number
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.gate.column_range import ColumnRange, Path
from nightkeep.model.arrow_types import Scalar

_PREFIX_LENGTH: Final = 32
"""The default of how much of a text a bound keeps, in StatisticsCollection.scala of delta-spark."""


def clustering_faults(parent: DeltaSnapshot, candidate: DeltaSnapshot) -> Iterator[str]:
    """Faults of a commit of ours. A file whose rows are all deleted may go, whoever clustered it."""
    if not candidate.schema.clustering or not candidate.actions:
        return
    before, after = (_by_path(side) for side in (parent, candidate))
    for path, file in before.items():
        has_rows = file.rows is None or file.deleted_rows < file.rows
        if path not in after and has_rows and not candidate.changes_rows and is_of_others(file):
            yield f"{file.name}: removed, though {provider_of(file)} clustered it, expected it to be left to that"
    for path, file in after.items():
        if path not in before and provider_of(file) != PROVIDER:
            yield f"{file.name}: clustering provider {provider_of(file)}, expected {PROVIDER}"


def _by_path(side: DeltaSnapshot) -> Mapping[str, DeltaDataFile]:
    return {file.path: file for unit in side.units for file in unit.files}


def missing_faults(schema: DeltaSchema, file: DeltaDataFile, seen: Mapping[Path, ColumnRange]) -> Iterator[str]:
    """Statistics of clustering columns that a new file lacks. `seen`: what its values are, by logical path.

    A bound may be missing where JSON has no text for the value, or where no text is above one that is cut.
    """
    stats = parse_object(file.stats or "{}", subject=f"statistics of {file.path}")
    keeps_texts = whole_number(schema, "delta.dataSkippingStringPrefixLength", _PREFIX_LENGTH) > 0
    for leaf in (leaf for leaf in leaves(schema) if leaf.stored in schema.clustering):
        held = seen[leaf.path]
        wanted = ["minValues"] if _has_text(held.least) else []
        has_end = not held.nans and _has_text(held.greatest) and _can_be_cut(held.greatest, keeps_texts=keeps_texts)
        wanted += ["maxValues"] if has_end else []
        missing = [group for group in (*wanted, "nullCount") if _at(stats.get(group), leaf) is None]
        if missing:
            yield f"no {', '.join(missing)} of the clustering column {'.'.join(leaf.path)}"


def _has_text(value: Scalar | None) -> bool:
    """Whether JSON has a text for a value: not for NaN and infinity, times that Python has not, texts that are no
    Unicode."""
    if value is None or not value.is_valid:
        return False
    try:
        known = value.as_py()
    except (ValueError, OverflowError):
        return False
    return not isinstance(known, float) or isfinite(known)


def _can_be_cut(value: Scalar | None, *, keeps_texts: bool) -> bool:
    """Whether some text is above all that begin as this one: above the highest character there is none. `keeps_texts`:
    whether bounds keep any part of a text."""
    known = None if value is None else value.as_py()
    return not isinstance(known, str) or (keeps_texts and chr(0x10FFFF) not in known)


def _at(values: object, leaf: DeltaLeaf) -> object:
    for name in leaf.stored:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values
