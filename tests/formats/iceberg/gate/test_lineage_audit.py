"""Row ids of made snapshots: right ones, and each way to give one that is somebody else's."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.formats.iceberg.content_made import file_of

from nightkeep.formats.iceberg.gate.lineage_audit import row_id_faults
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot


@dataclass
class Made:
    """What of a snapshot the audit reads."""

    files: list[ContentFile]
    sequence_number: int = 2
    raw: dict[str, Any] = field(default_factory=lambda: {"first-row-id": 100, "added-rows": 20})
    has_row_lineage: bool = True
    snapshots: list[dict[str, Any]] = field(default_factory=list)

    def as_snapshot(self) -> IcebergSnapshot:
        found = SimpleNamespace(
            units=[SimpleNamespace(files=self.files)],
            schema=SimpleNamespace(has_row_lineage=self.has_row_lineage),
            raw=self.raw,
            sequence_number=self.sequence_number,
            metadata={"snapshots": self.snapshots},
            metadata_location="v1.metadata.json",
        )
        return cast(IcebergSnapshot, found)


OLD = file_of("old", rows=50, first_row_id=0)
TAKEN = [{"sequence-number": 1, "first-row-id": 0, "added-rows": 100}]


def faults(fresh: list[ContentFile], *, old: ContentFile = OLD, **changes: Any) -> list[str]:
    taken = changes.pop("snapshots", TAKEN)
    parent = Made([old], sequence_number=1, snapshots=taken)
    return list(row_id_faults(parent.as_snapshot(), Made([OLD, *fresh], **changes).as_snapshot()))


def fresh(name: str, first: int | None, rows: int = 10) -> ContentFile:
    return file_of(name, sequence=2, rows=rows, first_row_id=first)


def test_ids_that_the_snapshot_reserves_are_right() -> None:
    assert faults([fresh("a", 100), fresh("b", 110)]) == []
    assert faults([]) == []


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ([fresh("a", None)], "/a: no first row id"),
        ([fresh("a", 95)], "/a: row ids 95 to 105, expected from 100 up to 120"),
        ([fresh("a", 111)], "/a: row ids 111 to 121, expected from 100 up to 120"),
        ([fresh("a", 100), fresh("b", 109)], "/a and /b: row ids overlap at 109"),
    ],
)
def test_ids_of_others_are_named(files: list[ContentFile], named: str) -> None:
    (fault,) = faults(files)
    assert named.replace("/a", files[0].path).replace("/b", files[-1].path) == fault


def test_a_snapshot_begins_above_all_ids_given_before_it() -> None:
    low = {"first-row-id": 90, "added-rows": 20}
    assert faults([fresh("a", 90)], raw=low) == ["first-row-id 90, expected the table's next, 100"]
    # Snapshots that came after it was staged make it lose the race, and are no fault of its.
    later = [*TAKEN, {"sequence-number": 2, "first-row-id": 100, "added-rows": 900}]
    assert faults([fresh("a", 100)], snapshots=later) == []
    branch = [*TAKEN, {"sequence-number": 1, "first-row-id": 100, "added-rows": 7}]
    assert faults([fresh("a", 107)], snapshots=branch)[0] == "first-row-id 100, expected the table's next, 107"


def test_files_from_before_row_lineage_are_given_ids_too() -> None:
    assert faults([fresh("a", 100)], old=file_of("old", rows=50)) == [
        f"{OLD.path}: row ids 0 to 50, expected from 100 up to 120"
    ]


@pytest.mark.parametrize("raw", [{}, {"first-row-id": 100}, {"first-row-id": 100, "added-rows": -1}])
def test_a_snapshot_that_reserves_nothing_is_named(raw: dict[str, Any]) -> None:
    (fault,) = faults([fresh("a", 100)], raw=raw)
    assert fault.endswith("expected numbers")


def test_a_table_without_row_lineage_has_no_ids() -> None:
    assert faults([fresh("a", None)], raw={}, has_row_lineage=False) == []
