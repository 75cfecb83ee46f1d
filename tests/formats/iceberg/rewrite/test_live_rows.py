"""Rows of tables of Iceberg Java's that no delete hides: the gate finds them in a way of its own."""

from collections import Counter
from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.shown import snapshot_of

from nightkeep.formats.iceberg.gate.scan import rows, survivors
from nightkeep.formats.iceberg.rewrite.optimize import live_rows
from nightkeep.formats.iceberg.rewrite.placed_files import placed_files
from nightkeep.storage import LocalStorage

WITH_DELETES = (
    "merge_on_read_v2",
    "merge_on_read_v3",
    "upserts_v3",
    "upserts_of_two_keys_v2",
    "mixed_keys_v2",
    "positions",
    "vectors",
    "null_keys_v3",
)
Golden = Callable[[str], Table]


def counted(tables: Iterable["pa.Table | pa.RecordBatch"], columns: list[str]) -> Counter[str]:
    return Counter(repr(row) for table in tables for row in table.select(columns).to_pylist())


@pytest.mark.parametrize("name", WITH_DELETES)
def test_rows_are_those_that_the_gate_shows(name: str, golden: Golden) -> None:
    snapshot, storage = snapshot_of(golden(name)), LocalStorage("/")
    for unit in snapshot.units:
        columns = [field.name for field in unit.schema.current.fields]
        live, placed = live_rows(storage, unit), placed_files(unit)
        found = counted(live.batches(placed, columns), columns)
        assert found == counted(rows(storage, unit, survivors(storage, unit)), columns)
        assert live.count(placed) == found.total()
        # File by file, as packing asks, and with an index in small parts.
        small = live_rows(storage, unit, index_bytes=1)
        assert sum((counted(small.batches([each], columns), columns) for each in placed), Counter()) == found
