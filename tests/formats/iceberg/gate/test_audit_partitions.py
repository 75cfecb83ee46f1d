"""What the audit takes for one place: NaN, signed zeros and uuids in partitions, by snapshots made by hand."""

import math
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.content_made import equality_of, file_of, schema_of
from tests.formats.iceberg.optimized_lake import OptimizedLake
from tests.support.proofs import NO_ROWS
from tests.support.table_storage import storage_of

from nightkeep.formats.iceberg.gate.audit import version_faults
from nightkeep.formats.iceberg.gate.file_audit import file_faults
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Entry, Manifest, ManifestContent, Status
from nightkeep.formats.iceberg.metadata.manifests import write_manifest
from nightkeep.formats.iceberg.metadata.partition import typed, unit_key
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.units import PartitionFiles, gather
from nightkeep.model import Address, Operation, Outcome
from nightkeep.storage import LocalStorage

MACHINE = LocalStorage("/")
REALS = schema_of([("p", "double"), ("id", "long")], [("p", "identity")], version=2)
UUIDS = schema_of([("p", "uuid"), ("id", "long")], [("p", "identity")], version=2)
LOW, HIGH = (uuid.UUID(text).bytes for text in ("f79c3e09677c4bbda4793f349cb785e7", "01234567677c4bbda4793f349cb785e7"))
"""As Java orders them: the first bit of each half is a sign."""


def in_place(path: str, value: object, sequence: int = 1, **more: Any) -> ContentFile:
    raw = {
        "content": 0,
        "file_path": f"/{path}",
        "file_format": "PARQUET",
        "partition": (value,),
        "record_count": 1,
        "file_size_in_bytes": 1,
    }
    return file_of(path, sequence, partition=(value,), raw=raw, **more)


def snapshot_of(
    schema: IcebergSchema, version: int, files: Sequence[ContentFile], manifests: Sequence[Manifest] = ()
) -> IcebergSnapshot:
    entries = [Entry(Status.EXISTING, file.snapshot_id, file) for file in files]
    units = [unit_of(schema, place) for place in gather(schema, entries, snapshot_id=version).places]
    totals = {"data-files": 0, "delete-files": 0, "records": 0, "files-size": 0, "position-deletes": 0}
    for file in files:
        kind = "delete-files" if file.equality_ids else "data-files"
        rows = "equality-deletes" if file.equality_ids else "records"
        for name, more in ((kind, 1), (rows, file.rows), ("files-size", file.bytes)):
            totals[name] = totals.get(name, 0) + more
    return IcebergSnapshot(
        table=Address("iceberg", "lake/db.t", "db.t"),
        version=version,
        parent_version=version - 1,
        sequence_number=version,
        timestamp_ms=version,
        schema=schema,
        units=tuple(sorted(units, key=lambda unit: unit.key)),
        operation="replace",
        summary={f"total-{name}": str(totals.get(name, 0)) for name in (*totals, "equality-deletes")},
        manifests=tuple(manifests),
        raw={},
        metadata={},
        metadata_location="/m.json",
    )


def unit_of(schema: IcebergSchema, place: PartitionFiles) -> IcebergUnit:
    key, values = unit_key(schema, place.spec_id, place.values), typed(schema, place.spec_id, place.values)
    sides = (tuple(place.files), tuple(place.positional), tuple(place.equality))
    return IcebergUnit(key, values, place.spec_id, place.values, *sides, schema)


def a_nan() -> float:
    """Each a NaN of its own, as every manifest that is read makes one."""
    (value,) = struct.unpack("<d", struct.pack("<d", math.nan))
    assert value != value
    return float(value)


def faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> str:
    return "; ".join(version_faults(MACHINE, parent, candidate, ()))


@pytest.mark.parametrize("value", [None, 1.0, -0.0, math.nan])
def test_a_file_that_stays_in_its_partition_is_unchanged(value: float | None) -> None:
    made = [a_nan() if value is not None and math.isnan(value) else value for _ in range(2)]
    sides = [snapshot_of(REALS, version, [in_place("d", each)]) for version, each in zip((5, 6), made, strict=True)]
    assert faults(sides[0], sides[1]) == ""


@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), (math.nan, None), (1.0, math.nan)])
def test_a_file_that_moves_to_another_partition_is_found(before: float, after: float | None) -> None:
    sides = [snapshot_of(REALS, version, [in_place("d", each)]) for version, each in ((5, before), (6, after))]
    assert "/d: partition changed, though its bytes did not" in faults(sides[0], sides[1])
    kept = in_place("d", before)
    lying = replace(kept, raw={**kept.raw, "partition": (after,)})
    assert "/d: partition changed" in faults(sides[0], snapshot_of(REALS, 6, [lying]))


def test_a_delete_that_goes_too_early_from_a_partition_of_nan_is_found() -> None:
    data, delete = in_place("d", a_nan()), equality_of("x", 2, partition=(a_nan(),))
    parent, candidate = snapshot_of(REALS, 5, [data, delete]), snapshot_of(REALS, 6, [data])
    assert "/x: equality deletes are gone, /d in p=nan still needs them" in faults(parent, candidate)
    news = in_place("n", a_nan(), snapshot_id=6, file_sequence_number=6)
    proven = version_faults(MACHINE, parent, snapshot_of(REALS, 6, [news]), [unit_key(REALS, 0, (math.nan,))])
    assert "/x: equality deletes are gone, the new /n is older than they are" in proven


def test_deletes_of_one_zero_are_not_of_the_other() -> None:
    data, delete = in_place("d", 0.0), equality_of("x", 2, partition=(-0.0,))
    found = faults(snapshot_of(REALS, 5, [data, delete]), snapshot_of(REALS, 6, [data]))
    assert "still needs them" not in found


# Bounds of new manifests


def bound_faults(folder: Path, schema: IcebergSchema, values: Sequence[object], **told: object) -> str:
    """Of a manifest of files that stay, with one summary that says something else of them."""
    files = [in_place(f"d{number}", value) for number, value in enumerate(values)]
    path = folder / f"{uuid.uuid4().hex}.avro"
    entries = [Entry(Status.EXISTING, file.snapshot_id, file) for file in files]
    manifest = write_manifest(
        MACHINE,
        str(path),
        entries,
        schema=schema,
        spec_id=0,
        content=ManifestContent.DATA,
        snapshot_id=6,
        sequence_number=6,
    )
    (summary,) = manifest.partitions or ()
    lying: Mapping[str, object] = {**summary, **told}
    candidate = snapshot_of(schema, 6, files, [replace(manifest, partitions=(lying,))])
    return faults(snapshot_of(schema, 5, files), candidate)


def test_uuids_are_bounded_as_java_orders_them(tmp_path: Path) -> None:
    assert bound_faults(tmp_path, UUIDS, [LOW, HIGH]) == ""
    assert "outside of its bounds" in bound_faults(tmp_path, UUIDS, [LOW, HIGH], lower_bound=HIGH)
    assert "outside of its bounds" in bound_faults(tmp_path, UUIDS, [LOW, HIGH], upper_bound=LOW)
    unsigned = {"lower_bound": HIGH, "upper_bound": LOW}
    assert "outside of its bounds" in bound_faults(tmp_path, UUIDS, [LOW, HIGH], **unsigned)


@given(st.lists(st.uuids().map(lambda each: each.bytes), min_size=1, max_size=5))
def test_any_uuids_are_within_the_bounds_that_we_write(
    tmp_path_factory: pytest.TempPathFactory, values: list[bytes]
) -> None:
    assert bound_faults(tmp_path_factory.getbasetemp(), UUIDS, values) == ""


def test_nan_and_the_two_zeros_are_reported_as_java_orders_them(tmp_path: Path) -> None:
    values, zero = [a_nan(), -0.0, 1.0], struct.pack("<d", 0.0)
    assert bound_faults(tmp_path, REALS, values) == ""
    assert "holds NaN, its summary states none" in bound_faults(tmp_path, REALS, values, contains_nan=False)
    assert "holds -0.0, outside of its bounds" in bound_faults(tmp_path, REALS, values, lower_bound=zero)


# What Java wrote


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> OptimizedLake:
    return OptimizedLake(iceberg_java, iceberg.table())


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("double", ["NaN", 1.0]),
        ("float", [0.0, -0.0]),
        ("uuid", ["01234567-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"]),
    ],
)
def test_odd_partitions_of_java_are_maintained(
    lake: OptimizedLake, iceberg: Warehouse, kind: str, values: list[Any]
) -> None:
    """First files that stay, with positions beside them; then new ones."""
    with runs.configured(iceberg):
        lake.create([("p", kind), ("id", "long")], partition=(("p", "identity"),))
        for start in (0, 100):
            lake.append([[value, start + place] for place, value in enumerate(values)])
        lake.java.cdc(lake.table, [("-D", [value, place]) for place, value in enumerate(values)], keys=["id"])
        before = lake.shown()
        for number, operation in enumerate((Operation.PERSIST_DELETES, Operation.OPTIMIZE)):
            done = runs.care_for(lake.table, run_id=f"odd {number}", operation=operation)
            assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
        assert done.outcome is Outcome.VERIFIED
        assert lake.shown() == before
        unit = lake.snapshot.units[-1]
        assert (unit.key.partition == "p=nan") is (kind == "double")
        elsewhere = [replace(file, partition=(a_nan(),)) for file in unit.files]
        found = [fault for file in elsewhere for fault in file_faults(storage_of(lake.opened), unit, file, **NO_ROWS)]
        assert any("of partition (nan,)" in fault for fault in found) is (kind != "double")
