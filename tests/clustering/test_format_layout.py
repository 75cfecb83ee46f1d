"""Every format's part of packing and clustering is a value that tasks and other processes may take with them."""

import pickle
from typing import Any

import pytest
from tests.formats.delta.layouts import a_file, a_snapshot

from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.formats.delta.rewrite.optimize import LAYOUT as DELTA
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT as ICEBERG
from nightkeep.formats.paimon.rewrite.append.optimize import LAYOUT as PAIMON
from nightkeep.model import Clustering, Curve, Operation, Request


@pytest.mark.parametrize("layout", [DELTA, ICEBERG, PAIMON])
def test_a_part_and_its_methods_pickle(layout: FormatLayout[Any, Any, Any, Any, Any, Any]) -> None:
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert pickle.loads(pickle.dumps(layout.pack_files)).__self__ == layout


def test_a_request_to_cluster_packs_nothing_and_the_reverse() -> None:
    snapshot = a_snapshot(a_file("a", 10), a_file("b", 10))
    (unit,) = DELTA.units(snapshot)
    plain = Request(Operation.OPTIMIZE, 0)
    clustered = Request(Operation.OPTIMIZE, 0, clustering=Clustering(("ID",), Curve.Z))
    assert DELTA.cluster_files(snapshot, unit, plain) is None and DELTA.pack_files(snapshot, unit, clustered) is None
    packed, moved = DELTA.pack_files(snapshot, unit, plain), DELTA.cluster_files(snapshot, unit, clustered)
    assert packed is not None and moved is not None and packed.input_files == moved.input_files == ("a", "b")
    (task,) = moved.tasks
    assert task.clustering.columns == ("id",)  # type: ignore[union-attr]
