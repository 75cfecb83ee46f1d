"""Manifests and their lists: what every engine wrote is read as Java reads it, and Java reads what we write."""

import dataclasses
import io
import json
import math
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import DecimalType, DoubleType, IntegerType, NestedField, StringType, UUIDType
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_catalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.golden_shapes import TYPE_ROWS, TYPES
from tests.formats.iceberg.java_entries import entry_shown, manifest_shown
from tests.formats.iceberg.next_snapshots import SNAPSHOT_ID, NextSnapshot
from tests.formats.iceberg.shown import STORAGE, snapshot_of

from nightkeep.encodings import avro_codecs
from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.iceberg.metadata import avro
from nightkeep.formats.iceberg.metadata.avro import read_records, write_records
from nightkeep.formats.iceberg.metadata.content_files import (
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    NewFile,
    Status,
)
from nightkeep.formats.iceberg.metadata.locations import name_in, root_of, storage_name
from nightkeep.formats.iceberg.metadata.manifest_list import read_manifest_list, write_manifest_list
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_names, entry_schema, sanitized
from nightkeep.formats.iceberg.metadata.manifests import read_manifest, write_manifest
from nightkeep.formats.iceberg.metadata.new_locations import data_location, metadata_location
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.limits import BLOCK
from nightkeep.model import Operation, Outcome
from nightkeep.storage import LocalStorage
from nightkeep.storage.objects.store import ObjectStorage

pytestmark = pytest.mark.in_turn("version")

READ = (
    "plain_v2",
    "plain_v3",
    "types_v2",
    "transforms_v2",
    "transforms_v3",
    "odd_paths_v2",
    "specs_deleted_v2",
    "specs_deleted_v3",
    "lineage",
    "history_v2",
    "history_v3",
    "upserts_of_two_keys_v2",
    "upserts_of_two_keys_v3",
    "changelog_v2",
    "positions",
    "vectors",
    "vectors_named_parquet",
    "upgraded",
    "upgraded_upserts",
    "merge_on_read_v2",
    "merge_on_read_v3",
)
WRITTEN = (
    "transforms_v2",
    "transforms_v3",
    "specs_deleted_v2",
    "specs_deleted_v3",
    "lineage",
    "upserts_of_two_keys_v2",
    "positions",
    "vectors",
    "upgraded",
)


def entries_of(manifests: tuple[Manifest, ...], schema: IcebergSchema) -> list[dict[str, Any]]:
    return [entry_shown(m, e, schema) for m in manifests for e in read_manifest(STORAGE, m, schema)]


def read_as_java(java: IcebergJava, table: Table) -> None:
    snapshot = snapshot_of(table)
    assert [manifest_shown(manifest) for manifest in snapshot.manifests] == java.manifests(table)
    assert entries_of(snapshot.manifests, snapshot.schema) == java.entries(table)
    assert snapshot.manifests


@pytest.mark.parametrize("name", READ)
def test_what_engines_wrote_is_read_as_java_reads_it(
    made: Callable[[str], Table], iceberg_java: IcebergJava, name: str
) -> None:
    read_as_java(iceberg_java, made(name))


@pytest.mark.parametrize("upgraded", [False, True])
def test_what_pyiceberg_wrote_is_read_as_java_reads_it(
    iceberg: Warehouse, iceberg_java: IcebergJava, *, upgraded: bool
) -> None:
    """Also manifests of the first version, which have no sequence numbers, in a table that was upgraded."""
    table = iceberg.table()
    iceberg_java.create(iceberg.table("db.other"), (("id", "int"),))
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", None, "c"]})
    with pyiceberg_catalog(iceberg) as catalog:
        found = catalog.create_table(
            table.name,
            Schema(NestedField(1, "id", IntegerType()), NestedField(2, "name", StringType())),
            partition_spec=PartitionSpec(PartitionField(2, 1000, parse_transform("identity"), "name")),
            properties={"format-version": "1" if upgraded else "2"},
        )
        found.append(rows)
        if upgraded:
            with found.transaction() as transaction:
                transaction.upgrade_table_version(2)
            found.append(rows)
        else:
            found.delete("id = 2")

    read_as_java(iceberg_java, table)
    assert {m.sequence_number for m in snapshot_of(table).manifests} & ({0} if upgraded else {1, 2})


@pytest.mark.few(2)
@pytest.mark.parametrize("name", WRITTEN)
def test_java_reads_what_we_write_with_every_field_that_was_carried_over(
    make: Callable[[str], Table], iceberg_java: IcebergJava, name: str
) -> None:
    table = make(name)
    after = NextSnapshot.of(table)
    before = [each for each in iceberg_java.entries(table) if each["status"] != Status.DELETED]
    gone, *kept = after.live()
    deleted = Entry(Status.DELETED, SNAPSHOT_ID, gone.file)

    copy = after.registered(iceberg_java, after.manifests([deleted, *kept]))

    found = {(e["file_path"], e["content_offset"]): e for e in iceberg_java.entries(copy)}
    assert len(found) == len(before)
    for each in before:
        identity = (each["file_path"], each["content_offset"])
        removed = identity == gone.file.identity
        own = {"status": 2, "snapshot_id": SNAPSHOT_ID} if removed else {"status": 0}
        assert found[identity] == each | own | {"manifest_path": found[identity]["manifest_path"]}
    read_as_java(iceberg_java, copy)
    for manifest in snapshot_of(copy).manifests:
        own_entries = [e for e in found.values() if e["manifest_path"] == manifest.path]
        live = [e["sequence_number"] for e in own_entries if e["status"] != 2]
        assert manifest.min_sequence_number == min(live, default=after.sequence_number)


@pytest.mark.parametrize("version", [2, 3])
def test_entries_whose_writer_did_not_keep_when_they_were_added(
    iceberg: Warehouse, iceberg_java: IcebergJava, version: int
) -> None:
    """As older versions of Java. It reads and writes null for them, and so do we; their table is maintained."""
    table = iceberg.table()
    iceberg_java.create(table, (("id", "long"), ("p", "string")), Layout((("p", "identity"),), version))
    for number in range(3):
        iceberg_java.append(table, [[number, "a"], [number, "b"]])
    iceberg_java.cdc(table, [("-D", [0, "a"])], keys=["id", "p"])
    after = NextSnapshot.of(table)
    undated = [
        dataclasses.replace(
            each, file=dataclasses.replace(each.file, is_dated=False, file_sequence_number=each.file.sequence_number)
        )
        for each in after.live()
    ]
    (removed, *kept) = (each for each in undated if each.file.path.count("p=b"))
    gone = dataclasses.replace(removed, status=Status.DELETED, snapshot_id=SNAPSHOT_ID)
    others = [each for each in undated if not each.file.path.count("p=b")]

    copy = after.registered(iceberg_java, after.manifests([gone, *kept, *others]))

    read_as_java(iceberg_java, copy)
    found = iceberg_java.entries(copy)
    assert [each["file_sequence_number"] for each in found] == [None] * 7
    assert [entry.file for entry in NextSnapshot.of(copy).live()] == [entry.file for entry in [*kept, *others]]
    rows = iceberg_java.read(copy)
    with runs.configured(iceberg):
        for number, operation in enumerate((Operation.PERSIST_DELETES, Operation.OPTIMIZE)):
            where = {"where": "p = 'a'"}
            done = runs.care_for(copy, run_id=f"undated {number}", operation=operation, **where)
            assert done.outcome is Outcome.VERIFIED, done.reason
            assert iceberg_java.read(copy) == rows
    left = {each["file_path"]: each["file_sequence_number"] for each in iceberg_java.entries(copy)}
    assert [left[entry.file.path] for entry in kept] == [None, None]


@pytest.mark.parametrize("version", [2, 3])
def test_new_files_inherit_the_commits_numbers_or_keep_an_older_data_sequence(
    iceberg: Warehouse, iceberg_java: IcebergJava, version: int
) -> None:
    table = iceberg.table()
    iceberg_java.create(table, (("id", "long"),), Layout(format_version=version))
    for start in range(2):
        iceberg_java.append(table, [[start], [start]])
    after = NextSnapshot.of(table)
    files = after.data_files()
    inheriting, keeping = (
        NewFile(FileContent.DATA, 0, {**f.raw, "first_row_id": None, "file_path": f"{f.path}{n}"}, n)
        for f, n in zip(files, (None, 1), strict=True)
    )

    copy = after.registered(iceberg_java, after.manifests([inheriting, keeping]), "append")

    read_as_java(iceberg_java, copy)
    found = iceberg_java.entries(copy)
    assert [(e["status"], e["sequence_number"], e["file_sequence_number"]) for e in found] == [(1, 3, 3), (1, 1, 3)]
    assert [e["first_row_id"] for e in found] == ([4, 6] if version == 3 else [None, None])
    (manifest,) = iceberg_java.manifests(copy)
    assert (manifest["min_sequence_number"], manifest["first_row_id"]) == (1, 4 if version == 3 else None)


def test_row_ids_go_to_data_manifests_without_them_alone(make: Callable[[str], Table]) -> None:
    after = NextSnapshot.of(make("lineage"))
    assert after.parent.next_row_id is not None
    fresh = after.manifests(after.live(FileContent.DATA))
    _, written = after.listed([*after.parent.manifests, *fresh])

    kept = written.manifests[: len(after.parent.manifests)]
    assert kept == after.parent.manifests
    assert [m.first_row_id for m in kept if m.content is ManifestContent.DELETES] == [None] * sum(
        m.content is ManifestContent.DELETES for m in kept
    )
    (assigned,) = written.manifests[len(kept) :]
    assert assigned.first_row_id == after.parent.next_row_id
    assert written.next_row_id == after.parent.next_row_id + assigned.existing_rows


# Names, types and codecs

IDENTITIES = [(name, "identity") for name, kind, *_ in TYPES if isinstance(kind, str) and kind != "fixed[3]"]


@pytest.mark.parametrize("version", [2, 3])
def test_partition_values_of_every_type(iceberg: Warehouse, iceberg_java: IcebergJava, version: int) -> None:
    table = iceberg.table()
    columns, rows = list(TYPES), [list(row) for row in TYPE_ROWS]
    fields = [*IDENTITIES, ("code", "bucket[3]"), ("id", "truncate[10]"), ("raw", "truncate[1]")]
    if version == 3:
        columns.append(("nanos", "timestamp_ns"))
        rows = [[*row, f"2026-11-0{n}T01:02:03.000000009"] for n, row in enumerate(rows, 1)]
        fields.append(("nanos", "hour"))
    iceberg_java.create(table, columns, Layout(tuple(fields), version))
    iceberg_java.append(table, rows)
    after = NextSnapshot.of(table)

    read_as_java(iceberg_java, table)
    copy = after.registered(iceberg_java, after.manifests(after.live()))
    read_as_java(iceberg_java, copy)
    shown = [sorted(str(e["partition"]) for e in iceberg_java.entries(t)) for t in (table, copy)]
    assert shown[0] == shown[1] and len(shown[0]) == len(rows)


def test_values_that_engines_write_in_two_ways_are_refused(iceberg: Warehouse, iceberg_java: IcebergJava) -> None:
    """Java's manifests of such a table are no Avro."""
    table = iceberg.table()
    iceberg_java.create(table, (("id", "int"), ("three", "fixed[3]")), Layout((("three", "identity"),)))
    iceberg_java.append(table, [[1, "000102"]])
    (manifest,) = iceberg_java.manifests(table)
    with open(storage_name_of(manifest), "rb") as source, pytest.raises((IndexError, ValueError, EOFError)):
        list(fastavro.reader(source))
    with pytest.raises(RefusedTable, match=r"partition values of type fixed\[3\]"):
        snapshot_of(table)


def storage_name_of(manifest: dict[str, Any]) -> str:
    return "/" + storage_name(manifest["manifest_path"])


NAMES = {
    "plain": "plain",
    "a b": "a_x20b",
    "a.b-c": "a_x2Eb_x2Dc",
    "1x": "_1x",
    "_1": "_1",
    "x#\u00e9": "x_x23_xE9",
    "\U0001f600": "_xD83D_xDE00",
}


@pytest.mark.parametrize(("name", "avro_name"), NAMES.items())
def test_names_that_avro_does_not_allow(name: str, avro_name: str) -> None:
    assert sanitized(name) == avro_name


def test_partition_names_of_any_kind_are_read_and_written(iceberg: Warehouse, iceberg_java: IcebergJava) -> None:
    table = iceberg.table()
    iceberg_java.create(table, tuple((n, "int") for n in NAMES), Layout(tuple((n, "identity") for n in NAMES)))
    iceberg_java.append(table, [list(range(len(NAMES))), [None] * len(NAMES)])
    after = NextSnapshot.of(table)

    read_as_java(iceberg_java, table)
    copy = after.registered(iceberg_java, after.manifests(after.live()))
    read_as_java(iceberg_java, copy)
    assert {tuple(e["partition"]) for e in iceberg_java.entries(copy)} == {
        tuple(range(len(NAMES))),
        (None,) * len(NAMES),
    }


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "zstd"])
def test_java_reads_every_codec(make: Callable[[str], Table], iceberg_java: IcebergJava, codec: str) -> None:
    after = NextSnapshot.of(make("upserts_v2"))
    properties = {"write.manifest.compression-codec": codec}
    after = dataclasses.replace(after, parent=_with_properties(after, properties))

    copy = after.registered(iceberg_java, after.manifests(after.live()))

    read_as_java(iceberg_java, copy)
    with open(snapshot_of(copy).manifests[0].path.removeprefix("file:"), "rb") as source:
        assert fastavro.reader(source).codec == {"uncompressed": "null", "gzip": "deflate", "zstd": "zstandard"}.get(
            codec, codec
        )


def _with_properties(after: NextSnapshot, properties: dict[str, str]) -> Any:
    schema = dataclasses.replace(after.schema, properties={**after.schema.properties, **properties})
    return dataclasses.replace(after.parent, schema=schema)


def test_an_unknown_codec_is_asked_for_by_name() -> None:
    with pytest.raises(RefusedTable, match=r"write\.manifest\.compression-codec is 'lzo'; set it to one of "):
        avro.codec_of({"write.manifest.compression-codec": "lzo"})
    for ignored in ("lzo", ""):
        assert avro.codec_of({"write.avro.compression-codec": ignored}) is avro_codecs.CODECS["deflate"]


def test_equality_ids_are_ints_and_the_header_states_what_java_asks_for(make: Callable[[str], Table]) -> None:
    after = NextSnapshot.of(make("upserts_v2"))
    manifests = {m.content: m for m in after.manifests(after.live())}
    with open(f"/{manifests[ManifestContent.DELETES].name}", "rb") as source:
        reader = fastavro.reader(source)
        meta, schema = reader.metadata, json.loads(reader.metadata["avro.schema"])
        assert len(list(reader)) == len(after.live()) - len(after.data_files())
    fields = {f["name"]: f for f in schema["fields"][-1]["type"]["fields"]}
    assert fields["equality_ids"]["type"][1]["items"] == "int"
    assert meta.keys() >= {"schema", "schema-id", "partition-spec", "partition-spec-id", "format-version", "content"}
    assert (meta["content"], meta["format-version"], meta["partition-spec-id"]) == ("deletes", "2", "0")
    assert [f["id"] for f in json.loads(meta["schema"])["fields"]] == [1, 2, 3, 4]


# Values of our own

FIELDS = (
    (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (DecimalType(20, 3), st.decimals(-(10**16), 10**16, places=3)),
    (UUIDType(), st.binary(min_size=16, max_size=16)),
    (StringType(), st.text(st.characters(exclude_categories=["Cs"]))),
    (DoubleType(), st.floats()),
)
IDENTITY = parse_transform("identity")


def table_schema(root: str, version: int = 2) -> IcebergSchema:
    columns = [NestedField(n, f"c{n}", kind) for n, (kind, _) in enumerate(FIELDS, 1)]
    fields = [PartitionField(n, 999 + n, IDENTITY, f"c{n}") for n in range(1, len(FIELDS) + 1)]
    specs = {3: PartitionSpec(*fields, spec_id=3), 4: PartitionSpec(spec_id=4)}
    return IcebergSchema("t", version, root, Schema(*columns), {0: Schema(*columns)}, specs, 3, {})


def new_file(path: str = "/d/f.parquet", partition: tuple[object, ...] = (None,) * 5, **raw: Any) -> NewFile:
    own = {"content": 0, "file_path": path, "file_format": "PARQUET", "partition": partition, "record_count": 1}
    return NewFile(FileContent.DATA, raw.pop("spec_id", 3), {**own, "file_size_in_bytes": 9, **raw})


def write(root: Path, entries: list[Entry | NewFile], version: int = 2, **changes: Any) -> Manifest:
    schema = table_schema(str(root), version)
    told = {"schema": schema, "spec_id": 3, "content": ManifestContent.DATA, "snapshot_id": 5, "sequence_number": 9}
    (root / "m.avro").unlink(missing_ok=True)
    return write_manifest(LocalStorage("/"), f"{root}/m.avro", entries, **{**told, **changes})


@given(
    st.lists(st.tuples(*(st.none() | values for _, values in FIELDS)), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
    st.dictionaries(st.integers(0, 2**31 - 1), st.binary(max_size=9)),
)
def test_values_of_every_kind_survive(
    tmp_path_factory: pytest.TempPathFactory,
    partitions: list[tuple[Any, ...]],
    counts: dict[int, int],
    bounds: dict[int, bytes],
) -> None:
    root = tmp_path_factory.getbasetemp()
    maps = {"column_sizes": counts, "lower_bounds": bounds, "split_offsets": [4, 9], "key_metadata": b"k"}
    files: list[Entry | NewFile] = [new_file(partition=values, **maps) for values in partitions]
    manifest = write(root, files)

    found = read_manifest(STORAGE, manifest, table_schema(str(root)))

    assert [repr(entry.file.partition) for entry in found] == [repr(values) for values in partitions]
    for entry in found:
        assert {name: entry.file.raw[name] for name in maps} == maps
    summaries = manifest.partitions
    assert summaries is not None
    for at, summary in enumerate(summaries):
        column = [values[at] for values in partitions]
        assert summary["contains_null"] == (None in column)
        nans = [v for v in column if isinstance(v, float) and math.isnan(v)]
        assert summary["contains_nan"] == bool(nans)
        assert (summary["lower_bound"] is None) == (len(nans) + column.count(None) == len(column))


def test_summaries_order_zeros_by_sign_and_uuids_as_java_does(tmp_path: Path) -> None:
    high, low = bytes([0x80] + [0] * 15), bytes([0x7F] + [0] * 15)
    rows = [
        (1, None, high, "b", 0.0),
        (2, Decimal("1.5"), low, "\uffff", -0.0),
        (3, None, None, "\U0001f600", math.nan),
    ]
    files: list[Entry | NewFile] = [new_file(partition=row) for row in rows]
    summaries = write(tmp_path, files).partitions
    assert summaries is not None
    assert [(s["lower_bound"], s["upper_bound"]) for s in summaries] == [
        (b"\1\0\0\0", b"\3\0\0\0"),
        (b"\x05\xdc", b"\x05\xdc"),
        (high, low),
        (b"b", "\U0001f600".encode()),
        (b"\0" * 7 + b"\x80", b"\0" * 8),
    ]


def test_a_manifest_that_makes_no_sense_is_not_written(tmp_path: Path) -> None:
    (entry,) = read_manifest(STORAGE, write(tmp_path, [new_file()]), table_schema(str(tmp_path)))
    for entries, changes in (
        ([], {}),
        ([new_file(spec_id=4)], {}),
        ([new_file()], {"content": ManifestContent.DELETES}),
        ([dataclasses.replace(entry, status=Status.DELETED, snapshot_id=4)], {}),
        ([new_file(content_offset=4)], {}),
        ([new_file(first_row_id=4)], {}),
        ([new_file(record_count=None)], {}),
        ([new_file(partition=(1, 2))], {}),
        ([new_file(partition=(None, Decimal("1.2345"), None, None, None))], {}),
    ):
        with pytest.raises((ValueError, TypeError)):
            write(tmp_path, list(entries), **changes)
        assert not (tmp_path / "m.avro").exists()
    assert write(tmp_path, [dataclasses.replace(entry, status=Status.DELETED)]).deleted_files == 1


def test_many_entries_are_of_many_blocks(tmp_path: Path) -> None:
    files: list[Entry | NewFile] = [new_file(f"/d/{n}.parquet") for n in range(1_000)]
    manifest = write(tmp_path, files)
    found = read_manifest(STORAGE, manifest, table_schema(str(tmp_path)))
    assert [entry.file.path for entry in found] == [f"/d/{n}.parquet" for n in range(1_000)]
    with open(tmp_path / "m.avro", "rb") as source:
        # Of 16 records, whose size tells how many fit, and of 256 at most.
        assert [block.num_records for block in fastavro.block_reader(source)] == [16, 256, 256, 256, 216]


def test_old_deprecated_fields_and_fields_we_do_not_know_are_left_out(tmp_path: Path) -> None:
    """A manifest of the first version, whose names a writer chose itself."""
    schema = table_schema(str(tmp_path))
    old = entry_schema(schema, 4)
    old["fields"] = [f for f in old["fields"] if f["field-id"] not in (3, 4)]
    (of_file,) = (f["type"] for f in old["fields"] if f["field-id"] == 2)
    of_file["fields"] = [
        f | {"name": f"x{f['field-id']}"} for f in of_file["fields"] if f["field-id"] not in (134, 135, 143)
    ]
    of_file["fields"].append({"name": "block_size_in_bytes", "type": "long", "field-id": 105})
    of_file["fields"].append({"name": "new", "type": ["string", "null"], "field-id": 999})
    file = {"x100": "/d/f", "x101": "parquet", "x102": {}, "x103": 3, "x104": 4, "block_size_in_bytes": 1, "new": "n"}
    maps = {f["name"]: None for f in of_file["fields"] if f["name"] not in file}
    out = io.BytesIO()
    fastavro.writer(out, old, [{"status": 1, "snapshot_id": None, "data_file": file | maps}], codec="deflate")
    (tmp_path / "v1.avro").write_bytes(out.getvalue())
    manifest = a_manifest(f"{tmp_path}/v1.avro", spec_id=4, sequence_number=0, min_sequence_number=0)

    (entry,) = read_manifest(STORAGE, manifest, schema)

    assert (entry.snapshot_id, entry.file.sequence_number, entry.file.rows, entry.file.bytes) == (5, 0, 3, 4)
    assert not {"block_size_in_bytes", "_block_size_in_bytes"} & entry.file.raw.keys()
    assert write(tmp_path, [dataclasses.replace(entry, status=Status.EXISTING)], spec_id=4).existing_rows == 3


# Manifest lists


def a_manifest(path: str, **changes: Any) -> Manifest:
    counts = dict.fromkeys(("existing_files", "deleted_files", "added_rows", "existing_rows", "deleted_rows"), 0)
    told = {"spec_id": 3, "content": ManifestContent.DATA, "sequence_number": 9, "min_sequence_number": 9}
    own = {"path": path, "name": path[1:], "bytes": 1, "snapshot_id": 5, "added_files": 1, **counts, **told}
    return Manifest(**{**own, **changes})


def test_a_list_without_counts_takes_them_from_its_manifests(tmp_path: Path) -> None:
    deleted = Entry(
        Status.DELETED, 5, read_manifest(STORAGE, write(tmp_path, [new_file()]), table_schema("/t"))[0].file
    )
    manifest = write(tmp_path, [new_file(record_count=7), deleted])
    optional = ["null", "int"]
    names = {500: "string", 501: "long", 502: "int", 503: "long"}
    fields = [{"name": f"f{n}", "type": kind, "field-id": n} for n, kind in names.items()]
    fields += [{"name": f"f{n}", "type": optional, "field-id": n, "default": None} for n in range(504, 507)]
    out = io.BytesIO()
    record = {"f500": manifest.path, "f501": manifest.bytes, "f502": 3, "f503": 5, "f504": None, "f505": 0, "f506": 1}
    fastavro.writer(out, {"type": "record", "name": "manifest_file", "fields": fields}, [record])
    (tmp_path / "list.avro").write_bytes(out.getvalue())

    (found,) = read_manifest_list(STORAGE, f"{tmp_path}/list.avro")

    own = {"sequence_number": 0, "min_sequence_number": 0, "partitions": None}
    assert found == dataclasses.replace(manifest, **own)


def written_list(root: Path, manifests: list[Manifest], version: int = 2, next_row_id: int | None = None) -> str:
    location = f"{root}/list.avro"
    (root / "list.avro").unlink(missing_ok=True)
    told = {"snapshot_id": 5, "parent_id": None, "sequence_number": 9, "next_row_id": next_row_id}
    write_manifest_list(STORAGE, location, manifests, format_version=version, **told)  # type: ignore[arg-type]
    return location


def test_lists_that_make_no_sense(tmp_path: Path) -> None:
    good = a_manifest("/m/1.avro")
    assert read_manifest_list(STORAGE, written_list(tmp_path, [good])) == (good,)
    for broken in (
        [good, good],
        [dataclasses.replace(good, bytes=-1)],
        [dataclasses.replace(good, added_rows=-5)],
        [dataclasses.replace(good, sequence_number=-1)],
        [dataclasses.replace(good, path="")],
        [dataclasses.replace(good, path="m/1.avro")],
    ):
        location = written_list(tmp_path, broken)
        with pytest.raises(CorruptMetadata):
            read_manifest_list(STORAGE, location)
    with pytest.raises(RefusedTable, match="s3"):
        read_manifest_list(STORAGE, written_list(tmp_path, [dataclasses.replace(good, path="s3://b/1.avro")]))
    with pytest.raises(MissingFile):
        read_manifest_list(STORAGE, f"{tmp_path}/none.avro")
    for version, next_row_id in ((2, 5), (3, None)):
        with pytest.raises(ValueError, match="row ids"):
            written_list(tmp_path, [good], version, next_row_id)


# Hostile bytes


def put(root: Path, data: bytes) -> Manifest:
    (root / "h.avro").write_bytes(data)
    return a_manifest(f"{root}/h.avro")


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    maps = {"column_sizes": {1: 5}, "lower_bounds": {1: b"abc"}}
    write(tmp_path, [new_file(partition=(1, None, None, "a", None), **maps)])
    return (tmp_path / "m.avro").read_bytes()


def test_no_truncated_manifest_is_read(tmp_path: Path, data: bytes) -> None:
    assert len(read_manifest(STORAGE, put(tmp_path, data), table_schema("/t"))) == 1
    # Most of it is the schema's text.
    for length in (*range(0, len(data) - 300, 31), *range(len(data) - 300, len(data))):
        with pytest.raises(CorruptMetadata, match=r"h\.avro"):
            read_manifest(STORAGE, put(tmp_path, data[:length]), table_schema("/t"))


def test_flipped_bits_are_found_or_change_a_value(tmp_path: Path, data: bytes) -> None:
    refused = 0
    for bit in (*range(0, 8 * len(data) - 2_400, 239), *range(8 * len(data) - 2_400, 8 * len(data), 3)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            assert len(read_manifest(STORAGE, put(tmp_path, bytes(changed)), table_schema("/t"))) == 1
        except (CorruptMetadata, RefusedTable):
            refused += 1
    assert refused


@given(st.binary(max_size=80))
def test_any_bytes_are_records_or_refused(content: bytes) -> None:
    for head in (b"", b"Obj\x01"):
        with pytest.raises(CorruptMetadata, match="subject"):
            list(read_records(head + content, entry_names(table_schema("/t"), 3), subject="subject"))


def container(schema: Any, block: bytes, count: int, codec: str = "null") -> bytes:
    """An object container file with one block of these bytes."""
    out = io.BytesIO()
    fastavro.writer(out, record_of("int"), [], codec="null")
    empty = out.getvalue()
    sync = empty[-16:]
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    head, long, raw = io.BytesIO(), io.BytesIO(), io.BytesIO()
    fastavro.schemaless_writer(head, {"type": "map", "values": "bytes"}, meta)
    fastavro.schemaless_writer(long, "long", count)
    fastavro.schemaless_writer(raw, "bytes", block)
    return b"Obj\x01" + head.getvalue() + sync + long.getvalue() + raw.getvalue() + sync


def record_of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


INTS = record_of("int")
LONG = b"\xfe\xff\xff\xff\xff\xff\x7f"
EMPTY = {"type": "record", "name": "none", "fields": []}
SELF = {"type": "record", "name": "me", "fields": [{"name": "me", "type": "me"}]}


@pytest.mark.parametrize(
    "content",
    [
        container(EMPTY, b"", 1 << 40),
        container(record_of({"type": "array", "items": EMPTY}), LONG + b"\0", 1),
        container(record_of({"type": "array", "items": "null"}), LONG + b"\0", 1),
        container(SELF, b"\0", 1),
        container(record_of({"type": "fixed", "name": "f", "size": 1 << 60}), b"\0", 1),
        container(record_of("string"), LONG, 1),
        container(record_of("string"), b"\x01", 1),
        container(INTS, b"\0\0", 1),
        container(INTS, b"\0", -1),
        container({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}] * 2}, b"\0\0", 1),
        container(INTS, b"\0", 1, "lzma"),
        container("int", b"\0", 1),
        container({"type": "record", "name": "r"}, b"\0", 1),
        container(INTS, zlib.compress(b"\0"), 1, "deflate"),
        container(INTS, b"\0", 1, "snappy"),
        container(INTS, b"\x01\0\0\0\0\0\0", 1, "snappy"),
        container(INTS, b"\0", 1, "zstandard"),
    ],
    # Sync markers are random, and names of tests must be the same in every process.
    ids=lambda content: f"{len(content)}-bytes",
)
def test_containers_that_lie(content: bytes) -> None:
    with pytest.raises(CorruptMetadata, match="subject"):
        list(read_records(content, entry_names(table_schema("/t"), 3), subject="subject"))


def test_a_block_does_not_grow_without_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for codec in ("deflate", "zstandard", "snappy"):
        packed = avro_codecs.CODECS[codec].pack(bytes(1 << 16))
        whole = container(INTS, packed, 1 << 16, codec)
        names = entry_names(table_schema("/t"), 3)
        assert len(list(read_records(whole, names, subject="subject"))) == 1 << 16
        with monkeypatch.context() as patch:
            patch.setenv(BLOCK.variable, str(1 << 12))
            with pytest.raises(CorruptMetadata, match="subject"):
                list(read_records(whole, names, subject="subject"))


GOOD = {
    "status": 1,
    "snapshot_id": 5,
    "sequence_number": None,
    "file_sequence_number": None,
    "data_file": {
        "content": 0,
        "file_path": "/d/f",
        "file_format": "PARQUET",
        "record_count": 1,
        "file_size_in_bytes": 1,
    },
}
BROKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"status": 7}, {}),
    ({"status": -1}, {}),
    ({"status": 0}, {}),
    ({"sequence_number": -3}, {}),
    ({"snapshot_id": -3}, {}),
    ({}, {"file_path": ""}),
    ({}, {"file_path": "d/f"}),
    ({}, {"file_path": "/d/../f"}),
    ({}, {"file_format": ""}),
    ({}, {"record_count": -1}),
    ({}, {"file_size_in_bytes": -1}),
    ({}, {"content": 3}),
    ({}, {"content": 1}),
    ({}, {"content": 2}),
    ({}, {"content": 2, "equality_ids": []}),
    ({}, {"first_row_id": -1}),
]


@pytest.mark.parametrize(("entry", "file"), BROKEN)
def test_entries_that_make_no_sense(tmp_path: Path, entry: dict[str, Any], file: dict[str, Any]) -> None:
    schema = table_schema("/t", 3)
    names = avro_names(schema)
    record = {**GOOD, **entry, "data_file": {**dict.fromkeys(names), **GOOD["data_file"], "partition": {}, **file}}  # type: ignore[dict-item]
    ids = record["data_file"].get("equality_ids")
    record["data_file"]["equality_ids"] = ids
    told = avro.AvroLayout(entry_schema(schema, 4), entry_names(schema, 4), avro_codecs.CODECS["null"], {})
    (tmp_path / "h.avro").write_bytes(write_records([record], told))
    deletes = file.get("content") == 2
    content = ManifestContent.DELETES if deletes else ManifestContent.DATA
    manifest = a_manifest(f"{tmp_path}/h.avro", spec_id=4, content=content, first_row_id=None if deletes else 0)
    with pytest.raises(CorruptMetadata):
        read_manifest(STORAGE, manifest, schema)


@pytest.mark.parametrize("status", [0, 2])
def test_when_a_file_was_added_may_be_unknown_of_entries_that_were_carried_over(tmp_path: Path, status: int) -> None:
    schema = table_schema("/t", 3)
    record = {**GOOD, "status": status, "sequence_number": 2}
    record["data_file"] = {**dict.fromkeys(avro_names(schema)), **GOOD["data_file"], "partition": {}}  # type: ignore[dict-item]
    told = avro.AvroLayout(entry_schema(schema, 4), entry_names(schema, 4), avro_codecs.CODECS["null"], {})
    (tmp_path / "h.avro").write_bytes(write_records([record], told))
    counts = {"added_files": 0, "existing_files": int(status == 0), "deleted_files": int(status == 2)}
    manifest = a_manifest(f"{tmp_path}/h.avro", spec_id=4, first_row_id=0, **counts)
    (entry,) = read_manifest(STORAGE, manifest, schema)
    assert (entry.file.sequence_number, entry.file.file_sequence_number, entry.file.is_dated) == (2, 2, False)


def avro_names(schema: IcebergSchema) -> list[str]:
    return [f["name"] for f in entry_schema(schema, 4)["fields"][-1]["type"]["fields"]]


def test_the_wrong_number_of_entries_is_found(tmp_path: Path) -> None:
    manifest = write(tmp_path, [new_file()])
    for change in ({"added_files": 2}, {"added_files": 0, "existing_files": 1}, {"deleted_files": 1}):
        with pytest.raises(CorruptMetadata, match="as its manifest list counts"):
            read_manifest(STORAGE, dataclasses.replace(manifest, **change), table_schema("/t"))


# Places


def test_locations_are_names_and_nothing_is_decoded() -> None:
    assert storage_name("/a b/50%25") == storage_name("file:/a b/50%25") == storage_name("file:///a b/50%25")
    assert storage_name("/a b/50%25") == "a b/50%25" and storage_name("/a:b") == "a:b"
    assert storage_name("s3://b/a b/50%25") == storage_name("s3a://b/a b/50%25") == "a b/50%25"
    assert (storage_name("hdfs://n:1/p"), root_of("hdfs://n:1/p")) == ("p", "hdfs://n:1")
    assert root_of("s3a://b/k") == root_of("s3://b/other") == "s3://b" and root_of("file:/a") == root_of("/a") == "/"
    for elsewhere in ("wasbs://n/p", "file://host/p", "gs:b"):
        with pytest.raises(RefusedTable):
            storage_name(elsewhere)
    for nothing in ("", "a/b", "/", "file:", "file:a", "/a/", "/a/../b", "/a/./b", "/a\0", "s3://b", "s3://b/"):
        with pytest.raises(CorruptMetadata):
            storage_name(nothing)


def test_files_of_one_table_are_in_one_store(tmp_path: Path) -> None:
    manifest = write(tmp_path, [new_file("s3a://b/d/f.parquet")])
    with pytest.raises(RefusedTable, match=r"s3a://b/d/f.parquet: files in several stores: those in both / and s3://b"):
        read_manifest(STORAGE, manifest, table_schema("/t"))
    with pytest.raises(RefusedTable, match="both s3://b and /"):
        name_in(ObjectStorage("s3://b"), "/d/f.parquet")
    with pytest.raises(RefusedTable, match="both s3://b and s3://c"):
        name_in(ObjectStorage("s3://b"), "s3://c/d/f.parquet")
    assert name_in(ObjectStorage("s3://b"), "s3n://b/d/f.parquet") == "d/f.parquet"


def test_new_files_go_where_java_puts_them(iceberg: Warehouse, iceberg_java: IcebergJava, tmp_path: Path) -> None:
    columns = (("n", "string"), ("d", "date"), ("t", "timestamptz"), ("p", "decimal(9,2)"), ("u", "uuid"))
    fields = (
        ("n", "identity"),
        ("d", "identity"),
        ("t", "hour"),
        ("p", "identity"),
        ("n", "truncate[2]", "n cut"),
        ("u", "identity"),
        ("d", "void", "gone"),
    )
    rows = [
        ["a b/~*%\u00e9", "2026-11-01", "2026-11-01T05:00:00Z", "1.50", "f79c3e09-677c-4bbd-a479-3f349cb785e7"],
        [None] * 5,
    ]
    for number, properties in enumerate(
        (
            {},
            {"write.data.path": f"file:{tmp_path}/else/"},
            {"write.object-storage.enabled": "true"},
            {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"},
        )
    ):
        table = iceberg.table(f"db.t{number}")
        iceberg_java.create(table, columns, Layout(fields, properties=properties))
        iceberg_java.append(table, rows)
        schema = snapshot_of(table).schema
        for file in NextSnapshot.of(table).data_files():
            name = file.path.rpartition("/")[2]
            if properties.get("write.object-storage.partitioned-paths") == "false":
                name = name.split("-", 1)[1]
            assert storage_name(data_location(schema, 0, file.partition, name)) == file.name
        assert metadata_location(schema, "x.avro") == f"{schema.location}/metadata/x.avro"
