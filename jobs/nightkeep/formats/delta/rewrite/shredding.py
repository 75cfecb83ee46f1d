"""Files of one task -> what becomes of their shredded variants. Reads footers, of tables with variants alone.

Rows of files that are shredded alike are copied as they are stored: readers keep their skipping inside files. Rows of
other files come together as plain variants: a plain object beside typed columns would be one that readers may take for
no object (Parquet, "Variant Shredding"), and typed columns of two files need not fit each other.
"""

from __future__ import annotations

from typing import Final

from nightkeep.clustering.sizing import is_gone
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.model.arrow_types import has_type
from nightkeep.model.variant_type import Shredding, is_variant
from nightkeep.storage import Storage

MOST_FOOTERS: Final = 1000
"""Files whose footers are compared. Each source of a task on all executors compares them again."""


def shredding_of(storage: Storage, unit: DeltaUnit) -> Shredding:
    """KEPT if all files of the unit that have rows have their variants in the same columns, else ASSEMBLED."""
    names = [field.name for field in unit.schema.data_fields if has_type(field.type, is_variant)]
    files = [file for file in unit.files if not is_gone(file)]
    if not names:
        return Shredding.KEPT
    if len(files) > MOST_FOOTERS:
        return Shredding.ASSEMBLED
    first = None
    for file in files:
        found = DeltaFileReader(storage, unit, file, shredding=Shredding.KEPT).types(names)
        if first is not None and found != first:
            return Shredding.ASSEMBLED
        first = found
    return Shredding.KEPT
