"""Addresses of branches, and table metadata as a reader of one branch sees it."""

from typing import Any

import pytest

from nightkeep.errors import AddressError
from nightkeep.formats.iceberg.metadata.branches import as_branch, location_and_branch, tip
from nightkeep.formats.iceberg.metadata.table_metadata import head, with_snapshot


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("lake/db.t", ("lake/db.t", "main")),
        ("lake/db.t$branch_dev", ("lake/db.t", "dev")),
        ("lake/db.t$branch_a$branch_b", ("lake/db.t$branch_a", "b")),
        ("lake/db.`t$branch_dev`", ("lake/db.`t$branch_dev`", "main")),
        ("lake/db.`t.u`$branch_with spaces.and-more", ("lake/db.`t.u`", "with spaces.and-more")),
        ("lake/db.t$branch_main", ("lake/db.t", "main")),
    ],
)
def test_a_location_may_name_a_branch(location: str, expected: tuple[str, str]) -> None:
    assert location_and_branch(location) == expected


def test_a_branch_has_a_name() -> None:
    with pytest.raises(AddressError, match="expected the name of a branch"):
        location_and_branch("lake/db.t$branch_ ")


def metadata() -> dict[str, Any]:
    """Main at 3, the branch dev at 4; both come from 2."""
    parents = {1: None, 2: 1, 3: 2, 4: 2}
    snapshots = [
        {
            "snapshot-id": n,
            "parent-snapshot-id": parent,
            "sequence-number": n,
            "timestamp-ms": 100 * n,
            "manifest-list": "x",
        }
        for n, parent in parents.items()
    ]
    return {
        "format-version": 2,
        "table-uuid": "u",
        "last-updated-ms": 400,
        "last-sequence-number": 4,
        "current-snapshot-id": 3,
        "snapshots": snapshots,
        "snapshot-log": [{"timestamp-ms": 100 * n, "snapshot-id": n} for n in (1, 2, 3)],
        "refs": {
            "main": {"type": "branch", "snapshot-id": 3},
            "dev": {"type": "branch", "snapshot-id": 4, "max-ref-age-ms": 7},
            "tagged": {"type": "tag", "snapshot-id": 1},
        },
    }


def test_a_branch_is_seen_as_main() -> None:
    seen = as_branch(metadata(), "dev", subject="t")
    assert head(seen, subject="t").current == tip(metadata(), "dev", subject="t") == 4
    assert [each["snapshot-id"] for each in seen["snapshot-log"]] == [1, 2, 4]  # type: ignore[index,union-attr,call-overload]
    assert as_branch(metadata(), "main", subject="t") == metadata()
    for name in ("tagged", "gone"):
        with pytest.raises(AddressError, match=f"expected a branch of the table among dev, main, found '{name}'"):
            as_branch(metadata(), name, subject="t")


def added(parent: int, number: int = 5) -> dict[str, Any]:
    own = {"snapshot-id": 9, "parent-snapshot-id": parent, "sequence-number": number}
    return {**own, "timestamp-ms": 500, "manifest-list": "y"}


def test_a_snapshot_is_added_to_the_branch_alone() -> None:
    before = metadata()
    after = with_snapshot(before, added(4), location="file:/m", subject="t", branch="dev")
    assert after is not None
    assert after["refs"] == {**before["refs"], "dev": {"type": "branch", "snapshot-id": 9, "max-ref-age-ms": 7}}
    for kept in ("current-snapshot-id", "snapshot-log"):
        assert after[kept] == before[kept]
    assert after["last-sequence-number"] == 5


@pytest.mark.parametrize(
    ("branch", "parent", "number"), [("dev", 3, 5), ("dev", 4, 4), ("tagged", 1, 5), ("gone", 4, 5), ("main", 4, 5)]
)
def test_a_branch_that_moved_or_went_takes_no_snapshot(branch: str, parent: int, number: int) -> None:
    assert with_snapshot(metadata(), added(parent, number), location="file:/m", subject="t", branch=branch) is None
