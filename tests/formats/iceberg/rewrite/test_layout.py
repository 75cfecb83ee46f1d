"""Where the rows of tables of Iceberg Java's lie: bounds that hold for them, samples of live ones, deletes by kind."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.shown import snapshot_of

from nightkeep.formats.iceberg.gate.scan import rows, survivors
from nightkeep.formats.iceberg.metadata.leaf_columns import indexed_leaves
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT, layout_metrics
from nightkeep.storage import LocalStorage

Golden = Callable[[str], Table]


def counted(tables: Iterable["pa.Table | pa.RecordBatch"], columns: list[str]) -> Counter[str]:
    return Counter(repr(row) for table in tables for row in table.select(columns).to_pylist())


@pytest.mark.parametrize("name", ["merge_on_read_v2", "upserts_v3", "transforms_v2"])
def test_a_layout_bounds_every_row_and_samples_are_of_live_ones(name: str, golden: Golden) -> None:
    snapshot, storage = snapshot_of(golden(name)), LocalStorage("/")
    laid = LAYOUT.layout(snapshot)
    assert len(laid.bytes) == sum(len(unit.files) for unit in snapshot.units)
    assert laid.unit.tolist() == [n for n, unit in enumerate(snapshot.units) for _ in unit.files]
    names = [".".join(leaf.path) for leaf in indexed_leaves(snapshot.schema) if len(leaf.path) == 1]
    for place, sampled in LAYOUT.sample(storage, snapshot, names, 1000):
        unit = snapshot.units[place]
        live = counted(rows(storage, unit, survivors(storage, unit)), names)
        assert counted([sampled], names) <= live and sampled.num_rows
        for column in set(names) & laid.bounds.keys():
            bounds = laid.bounds[column]
            ends = [
                (low, high)
                for low, high, of in zip(bounds.lows.to_pylist(), bounds.highs.to_pylist(), laid.unit, strict=True)
                if of == place and low is not None
            ]
            values: list[Any] = [each for each in sampled.column(column).to_pylist() if each is not None]
            if ends and not any(isinstance(each, str | bytes) for each in values):
                assert all(min(low for low, _ in ends) <= each <= max(high for _, high in ends) for each in values)


@pytest.mark.parametrize(
    ("name", "deletes"),
    [
        ("positions", {"equality": 0, "vectors": 0}),
        ("vectors", {"equality": 0, "position": 0}),
        ("mixed_keys_v2", {"vectors": 0}),
    ],
)
def test_deletes_are_counted_by_kind(name: str, deletes: dict[str, int], golden: Golden) -> None:
    snapshot = snapshot_of(golden(name))
    found: Any = layout_metrics(snapshot, snapshot, [unit.key for unit in snapshot.units])
    kinds = found["delete_files"]["before"]
    assert kinds == found["delete_files"]["after"]
    assert {kind: kinds[kind] for kind in deletes} == deletes and sum(kinds.values()) > 0
    assert found["losing"] == []
