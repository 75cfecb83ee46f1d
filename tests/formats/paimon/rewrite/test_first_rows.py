"""Rows of keys that a deeper level has are left out; a retract is an error."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nightkeep.formats.paimon.data.columns import KIND
from nightkeep.formats.paimon.rewrite.first_rows import refuse_retracts


@pytest.mark.parametrize("kind", [1, 3])
def test_a_retract_is_named(kind: int) -> None:
    with pytest.raises(ValueError, match="expected no row of kind -U or -D in a table that keeps first rows"):
        refuse_retracts(pa.table({KIND: pa.array([0, kind], pa.int8())}))
    refuse_retracts(pa.table({KIND: pa.array([0, 2], pa.int8())}))
