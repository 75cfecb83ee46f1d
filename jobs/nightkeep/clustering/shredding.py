"""Files of one task -> what becomes of their shredded variants. Reads footers, of tables with variants alone.

Rows of files that are shredded alike are copied as they are stored: readers keep their skipping inside files. Rows of
other files come together as plain variants: a plain object beside typed columns would be one that readers may take for
no object (Parquet, "Variant Shredding"), and typed columns of two files need not fit each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import pyarrow as pa

from nightkeep.clustering.live_rows import OpenFile
from nightkeep.clustering.sizing import is_gone
from nightkeep.model.arrow_types import has_type
from nightkeep.model.file_columns import SizedFile
from nightkeep.model.variant_type import Shredding, is_variant

MOST_FOOTERS: Final = 1000
"""Files whose footers are compared. Each source of a task on all executors compares them again."""
F = TypeVar("F", bound=SizedFile)


def shredding_of(files: Sequence[F], schema: pa.Schema, kept: Callable[[F], OpenFile]) -> Shredding:
    """KEPT if all files that have rows have their variants in the same columns, else ASSEMBLED.

    `schema` is that of the table's columns. `kept` opens a file whose variants are read as they are stored.
    """
    names = [field.name for field in schema if has_type(field.type, is_variant)]
    some = [file for file in files if not is_gone(file)]
    if not names:
        return Shredding.KEPT
    if len(some) > MOST_FOOTERS:
        return Shredding.ASSEMBLED
    first = None
    for file in some:
        found = kept(file).sampled(names, 0, 0).schema.types
        if first is not None and found != first:
            return Shredding.ASSEMBLED
        first = found
    return Shredding.KEPT
