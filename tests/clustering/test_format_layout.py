"""Every format's part of packing and clustering is a value that tasks and other processes may take with them."""

import json
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.delta.layouts import KEY, a_file, a_snapshot
from tests.formats.iceberg.content_made import file_of, schema_of

from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.optimize import LAYOUT as DELTA
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT as ICEBERG
from nightkeep.formats.paimon.rewrite.append.optimize import LAYOUT as PAIMON
from nightkeep.model import Address, Clustering, Curve, Operation, Request


@pytest.mark.parametrize("layout", [DELTA, ICEBERG, PAIMON])
def test_a_part_and_its_methods_pickle(layout: FormatLayout[Any, Any, Any, Any, Any, Any]) -> None:
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert pickle.loads(pickle.dumps(layout.pack_files)).__self__ == layout


def test_a_request_to_cluster_packs_nothing_and_the_reverse() -> None:
    snapshot = a_snapshot(a_file("a", 10), a_file("b", 10))
    (unit,) = snapshot.units
    plain = Request(Operation.OPTIMIZE, 0)
    clustered = Request(Operation.OPTIMIZE, 0, clustering=Clustering(("ID",), Curve.Z))
    assert DELTA.cluster_files(snapshot, unit, plain) is None and DELTA.pack_files(snapshot, unit, clustered) is None
    packed, moved = DELTA.pack_files(snapshot, unit, plain), DELTA.cluster_files(snapshot, unit, clustered)
    assert packed is not None and moved is not None and packed.input_files == moved.input_files == ("a", "b")
    (task,) = moved.tasks
    assert task.clustering.columns == ("id",)  # type: ignore[union-attr]


def delta(*columns: tuple[str, str]) -> DeltaSnapshot:
    """A version with these columns, by name and physical name, and two files that only know the first one."""
    stats = [json.dumps({"numRecords": 9, "minValues": {"c1": low}, "maxValues": {"c1": low + 4}}) for low in (0, 50)]
    files = (replace(a_file(f"f{n}", 10), stats=each) for n, each in enumerate(stats))
    found = a_snapshot(*files)
    fields = (
        DeltaField(name, stored, n, pa.int64(), pa.int64(), nullable=True) for n, (name, stored) in enumerate(columns)
    )
    schema = replace(found.schema, fields=tuple(fields), mapping=ColumnMapping.NAME)
    return replace(found, schema=schema)


def iceberg(*columns: tuple[str, str]) -> IcebergSnapshot:
    """The same; ids of columns are their numbers."""
    ends = [(struct.pack("<q", low), struct.pack("<q", low + 4)) for low in (0, 50)]
    raw = [{"lower_bounds": {1: low}, "upper_bounds": {1: high}} for low, high in ends]
    files = tuple(file_of(f"f{n}", rows=9, raw=each) for n, each in enumerate(raw))
    schema = schema_of([(name, "long") for name, _ in columns])
    unit = IcebergUnit(KEY, {}, 0, (), files, (), (), schema)
    table = Address("iceberg", "c/n.t", "t")
    return IcebergSnapshot(table, 1, None, 1, 0, schema, (unit,), "append", {}, (), {}, {}, "/t/v1.metadata.json")


@pytest.mark.parametrize(("layout", "version"), [(DELTA, delta), (ICEBERG, iceberg)])
def test_figures_follow_a_renamed_column_and_know_nothing_of_a_new_one(
    layout: FormatLayout[Any, Any, Any, Any, Any, Any], version: Callable[..., Any]
) -> None:
    before, after = version(("id", "c1")), version(("key", "c1"), ("late", "c2"))
    found: Any = layout.layout_metrics(before, after, [KEY])
    assert found == layout.layout_metrics(after, after, [KEY]) and found["skipping"]["key"]["before"] > 0.4
    assert found["skipping"]["late"] == {"before": 0.0, "after": 0.0} and set(found["overlap"]) == {"key", "late"}
    # A new column with the name of the old one has no bounds in its files.
    anew: Any = layout.layout_metrics(before, version(("key", "c1"), ("id", "c2")), [KEY])
    assert anew["skipping"]["id"]["before"] == 0.0 and anew["skipping"]["key"] == found["skipping"]["key"]
