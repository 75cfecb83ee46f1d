"""Columns that a Delta table may be clustered by."""

from pathlib import Path

import pytest
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.lake import request
from tests.formats.delta.runs import opened

from nightkeep.errors import UsageError
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.optimize import LAYOUT
from nightkeep.model import Clustering, Curve


def snapshot(folder: Path, **properties: str) -> DeltaSnapshot:
    made = HandMade(folder / "events", properties={f"delta.{name}": value for name, value in properties.items()})
    made.append("2026-11-01", range(3))
    return opened(made.folder).snapshot()


def test_columns_with_statistics_will_do(tmp_path: Path) -> None:
    found = snapshot(tmp_path)
    LAYOUT.require_columns(found, request())
    LAYOUT.require_columns(found, request(clustering=Clustering(("id", "note"), Curve.HILBERT)))
    assert LAYOUT.columns(found).resolved(Clustering(("ID",), Curve.Z)).columns == ("id",)


@pytest.mark.parametrize(
    ("column", "properties", "message"),
    [
        ("day", {}, "cluster by day: it is a partition column"),
        ("missing", {}, "cluster by missing"),
        (
            "note",
            {"dataSkippingNumIndexedCols": "1"},
            "cluster by note: it has no statistics, .*dataSkippingStatsColumns",
        ),
    ],
)
def test_other_columns_are_named(tmp_path: Path, column: str, properties: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LAYOUT.require_columns(snapshot(tmp_path, **properties), request(clustering=Clustering((column,), Curve.Z)))
