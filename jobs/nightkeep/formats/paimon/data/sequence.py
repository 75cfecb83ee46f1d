"""A table's options -> the order of rows of one key: sequence fields first, then sequence numbers."""

from __future__ import annotations

from nightkeep.formats.paimon.data.columns import SEQUENCE
from nightkeep.formats.paimon.metadata.merge_engine import sequence_descends, sequence_fields
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, keeps_first_row
from nightkeep.kernels.merge import Direction, OrderBy


def sequence_order(schema: PaimonSchema) -> tuple[OrderBy, ...]:
    """The order whose greatest row a key keeps: the newest (UserDefinedSeqComparator, then _SEQUENCE_NUMBER), or the
    oldest of a table that keeps first rows."""
    if keeps_first_row(schema):
        return (OrderBy(SEQUENCE, Direction.DESCENDING),)
    direction = Direction.DESCENDING if sequence_descends(schema) else Direction.ASCENDING
    return (*(OrderBy(name, direction) for name in sequence_fields(schema)), OrderBy(SEQUENCE))
