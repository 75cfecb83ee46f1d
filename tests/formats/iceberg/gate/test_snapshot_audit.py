"""What a snapshot says of itself: each field that says something else is a fault, and nothing else is."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.formats.iceberg.content_made import equality_of, file_of, metadata_of, positions_of, schema_of, vector_of
from tests.formats.iceberg.gate.test_audit_partitions import MACHINE, snapshot_of

from nightkeep.formats.iceberg.gate.snapshot_audit import counts, snapshot_faults
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot

COLUMNS = [("id", "long")]
SPEC = [("id", "identity")]
SCHEMA = schema_of(COLUMNS, SPEC)
PLACE: dict[str, Any] = {"partition": (1,)}
OLD, NEW, KEYS = (
    file_of("old", rows=9, bytes=90, **PLACE),
    file_of("new", rows=8, bytes=80, **PLACE),
    equality_of("keys", 2, rows=3, **PLACE),
)
DELETES = positions_of("deletes", 2, "old", rows=2, bytes=20, **PLACE)
VECTOR = vector_of("vector", 3, "old", rows=2, bytes=70, **PLACE)
REWRITTEN = {
    "nightkeep.operation": "optimize",
    "nightkeep.run": "nightkeep-1",
    "added-data-files": "1",
    "added-records": "8",
    "added-files-size": "80",
    "deleted-data-files": "1",
    "deleted-records": "9",
    "removed-files-size": "91",
    "removed-delete-files": "1",
    "removed-equality-delete-files": "1",
    "removed-equality-deletes": "3",
    "changed-partition-count": "1",
}
CONVERTED = {
    "nightkeep.operation": "persist-deletes",
    "nightkeep.run": "nightkeep-1",
    "added-delete-files": "1",
    "added-dvs": "1",
    "added-files-size": "10",
    "added-position-deletes": "2",
    "removed-delete-files": "1",
    "removed-position-delete-files": "1",
    "removed-position-deletes": "2",
    "removed-files-size": "20",
    "changed-partition-count": "1",
}


def parent_of(*files: ContentFile) -> IcebergSnapshot:
    return replace(snapshot_of(SCHEMA, 5, files), metadata=metadata_of(COLUMNS, SPEC))


def candidate_of(folder: Path, *files: ContentFile, operation: str, summary: dict[str, str]) -> IcebergSnapshot:
    location = folder / "list.avro"
    location.touch()
    raw: dict[str, Any] = {"manifest-list": str(location), "schema-id": 0, "timestamp-ms": 6}
    return replace(snapshot_of(SCHEMA, 6, files), operation=operation, summary=summary, raw=raw)


@pytest.fixture
def rewritten(tmp_path: Path) -> tuple[IcebergSnapshot, IcebergSnapshot]:
    return parent_of(OLD, KEYS), candidate_of(tmp_path, NEW, operation="replace", summary=dict(REWRITTEN))


@pytest.fixture
def converted(tmp_path: Path) -> tuple[IcebergSnapshot, IcebergSnapshot]:
    candidate = candidate_of(tmp_path, OLD, VECTOR, operation="delete", summary=dict(CONVERTED))
    return parent_of(OLD, DELETES), candidate


Sides = tuple[IcebergSnapshot, IcebergSnapshot]


def faults(sides: Sides, **changes: Any) -> str:
    return "; ".join(snapshot_faults(MACHINE, sides[0], replace(sides[1], **changes)))


def told(sides: Sides, **changes: Any) -> dict[str, Any]:
    return {**sides[1].raw, **changes}


def test_what_agrees_is_no_fault(rewritten: Sides, converted: Sides) -> None:
    assert faults(rewritten) == faults(converted) == ""


def test_files_are_counted_as_java_counts_them() -> None:
    """Of a vector its own bytes, not those of the file that it shares."""
    assert counts([OLD, NEW, KEYS, DELETES, VECTOR]) == {
        "files-size": 201,
        "data-files": 2,
        "records": 17,
        "delete-files": 3,
        "equality-delete-files": 1,
        "equality-deletes": 3,
        "position-delete-files": 1,
        "position-deletes": 4,
        "dvs": 1,
    }


@pytest.mark.parametrize("key", sorted({*REWRITTEN, *CONVERTED}))
def test_every_key_of_the_summary_is_proven(rewritten: Sides, converted: Sides, key: str) -> None:
    for sides, right in ((rewritten, REWRITTEN), (converted, CONVERTED)):
        for value in ("7", "none", None):
            summary = {name: text for name, text in {**right, key: value}.items() if text is not None}
            assert (faults(sides, summary=summary) != "") is (summary != right)


def test_the_operation_is_that_of_what_changed(rewritten: Sides, converted: Sides) -> None:
    assert "operation delete of optimize, expected replace" in faults(rewritten, operation="delete")
    assert "operation replace of persist-deletes, expected delete" in faults(converted, operation="replace")
    lying = {**CONVERTED, "nightkeep.operation": "optimize"}
    assert "operation replace with new deletes" in faults(converted, operation="replace", summary=lying)
    lying = {**REWRITTEN, "nightkeep.operation": "persist-deletes"}
    assert "operation delete with new files of data" in faults(rewritten, operation="delete", summary=lying)


def test_time_and_schema_are_reported(rewritten: Sides) -> None:
    assert "no timestamp-ms" in faults(rewritten, raw=told(rewritten, **{"timestamp-ms": None}))
    assert "schema-id None, expected 0" in faults(rewritten, raw=told(rewritten, **{"schema-id": None}))
    written_ms = int(Path(str(rewritten[1].raw["manifest-list"])).stat().st_mtime * 1000)
    assert faults(rewritten, timestamp_ms=written_ms) == ""
    assert "after its manifest list was written" in faults(rewritten, timestamp_ms=written_ms + 60_000)
    ahead = replace(rewritten[0], timestamp_ms=written_ms + 60_000)
    assert faults((ahead, rewritten[1]), timestamp_ms=written_ms + 60_000) == ""
