"""The headers of manifests and of their list: each entry that says something else, or nothing, is a fault."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.formats.iceberg.content_made import file_of, schema_of
from tests.formats.iceberg.gate.test_audit_partitions import MACHINE, snapshot_of

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.formats.iceberg.gate.header_audit import list_header_faults, manifest_header_faults
from nightkeep.formats.iceberg.metadata.avro import AvroLayout, read_header, write_records
from nightkeep.formats.iceberg.metadata.content_files import Entry, Manifest, ManifestContent, Status
from nightkeep.formats.iceberg.metadata.manifest_list import write_manifest_list
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_names
from nightkeep.formats.iceberg.metadata.manifests import write_manifest
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot

SCHEMAS = {
    version: schema_of([("p", "decimal(9, 2)"), ("id", "long")], [("p", "identity")], version=version)
    for version in (2, 3)
}
OF_MANIFESTS = ("schema", "schema-id", "partition-spec", "partition-spec-id", "format-version", "content")
OF_LISTS = ("snapshot-id", "parent-snapshot-id", "sequence-number", "format-version")


@pytest.fixture(params=SCHEMAS)
def candidate(request: pytest.FixtureRequest, tmp_path: Path) -> IcebergSnapshot:
    """Version 6, with the list of no manifest."""
    location = str(tmp_path / "list.avro")
    write_manifest_list(
        MACHINE,
        location,
        [],
        format_version=request.param,
        snapshot_id=6,
        parent_id=5,
        sequence_number=6,
        next_row_id=40 if request.param > 2 else None,
    )
    raw: dict[str, Any] = {"manifest-list": location, "first-row-id": 40}
    return replace(snapshot_of(SCHEMAS[request.param], 6, []), raw=raw)


def written(candidate: IcebergSnapshot) -> tuple[Manifest, bytes]:
    file = file_of("d", partition=(None,), raw=RAW)
    path = Path(str(candidate.raw["manifest-list"])).with_name("m.avro")
    manifest = write_manifest(
        MACHINE,
        str(path),
        [Entry(Status.EXISTING, 1, file)],
        schema=candidate.schema,
        spec_id=0,
        content=ManifestContent.DATA,
        snapshot_id=6,
        sequence_number=6,
    )
    return manifest, path.read_bytes()


RAW: dict[str, object] = {
    "content": 0,
    "file_path": "/d",
    "file_format": "PARQUET",
    "partition": (None,),
    "record_count": 1,
    "file_size_in_bytes": 1,
}


def headed(data: bytes, candidate: IcebergSnapshot, **changes: Any) -> bytes:
    """A file without records whose header differs."""
    header = read_header(data, subject="it")
    metadata = {key: value.decode() for key, value in header.metadata.items()}
    metadata |= {key.replace("_", "-"): value for key, value in changes.items() if key != "avro"}
    told = {key: value for key, value in metadata.items() if value is not None}
    schema = changes.get("avro", header.schema)
    return write_records([], AvroLayout(schema, entry_names(candidate.schema, 0), CODECS["null"], told))


def test_what_we_write_is_no_fault(candidate: IcebergSnapshot) -> None:
    manifest, data = written(candidate)
    assert not list(manifest_header_faults(data, manifest, candidate))
    assert not list(list_header_faults(MACHINE, candidate))


@pytest.mark.parametrize("name", OF_MANIFESTS)
def test_a_manifest_that_states_something_else(candidate: IcebergSnapshot, name: str) -> None:
    manifest, data = written(candidate)
    for value, found in ((None, "nothing"), ("", "nothing"), ("7", "7"), ("{", "{")):
        other = headed(data, candidate, **{name.replace("-", "_"): value})
        (fault,) = manifest_header_faults(other, manifest, candidate)
        assert fault.startswith(f"its header states {name} {found}, expected ")


def test_a_manifest_whose_fields_have_other_names(candidate: IcebergSnapshot) -> None:
    manifest, data = written(candidate)
    schema: Any = read_header(data, subject="it").schema
    renamed = [{**field, "name": f"{field['name']}_"} for field in schema["fields"]]
    other = headed(data, candidate, avro={**schema, "fields": renamed})
    (fault,) = manifest_header_faults(other, manifest, candidate)
    assert "another Avro schema" in fault


@pytest.mark.parametrize("name", [*OF_LISTS, "first-row-id"])
def test_a_list_that_states_something_else(candidate: IcebergSnapshot, name: str) -> None:
    path = Path(str(candidate.raw["manifest-list"]))
    if name == "first-row-id" and not candidate.schema.has_row_lineage:
        pytest.skip("there are no row ids")
    path.write_bytes(headed(path.read_bytes(), candidate, **{name.replace("-", "_"): "77"}))
    (fault,) = list_header_faults(MACHINE, candidate)
    assert f"its header states {name} 77, expected" in fault
