"""Which statistics a snapshot keeps, by metadata alone."""

from __future__ import annotations

from typing import Any

import pytest

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.kept_statistics import kept_statistics

THETA = {"type": "apache-datasketches-theta-v1", "snapshot-id": 1, "sequence-number": 1, "fields": [2]}
OTHER = {**THETA, "type": "positions-of-files-v1"}


def metadata(*blobs: dict[str, Any], of: int = 1) -> dict[str, Any]:
    return {"statistics": [{"snapshot-id": of, "statistics-path": "/t/a.stats", "blob-metadata": [*blobs]}]}


def snapshot(**summary: str) -> dict[str, Any]:
    return {"snapshot-id": 2, "parent-snapshot-id": 1, "summary": {"operation": "replace", **summary}}


OURS = snapshot(**{"nightkeep.operation": "optimize"})


def test_statistics_of_the_parent_are_kept_with_the_snapshot_that_they_are_of() -> None:
    (kept,) = kept_statistics(metadata(THETA), OURS, subject="t")
    assert kept == {"snapshot-id": 2, "statistics-path": "/t/a.stats", "blob-metadata": [THETA]}


def test_a_blob_of_another_type_is_left_out() -> None:
    (kept,) = kept_statistics(metadata(OTHER, THETA), OURS, subject="t")
    assert kept["blob-metadata"] == [THETA]


@pytest.mark.parametrize(
    ("raw", "added"),
    [
        ({}, OURS),
        (metadata(THETA, of=7), OURS),
        (metadata(OTHER), OURS),
        (metadata(THETA), snapshot()),
        (metadata(THETA), {key: value for key, value in OURS.items() if key != "parent-snapshot-id"}),
    ],
    ids=["none", "of another snapshot", "of another type", "rows may change", "no parent"],
)
def test_nothing_is_kept(raw: dict[str, Any], added: dict[str, Any]) -> None:
    assert list(kept_statistics(raw, added, subject="t")) == []


def test_statistics_that_are_no_list_are_damage() -> None:
    with pytest.raises(CorruptMetadata, match="statistics"):
        kept_statistics({"statistics": "x"}, OURS, subject="t")
