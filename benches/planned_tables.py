"""Metadata of tables of very many files: real manifests, and no data files, which a plan does not open."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import fastavro
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.formats.iceberg.metadata.avro import read_records
from nightkeep.formats.iceberg.metadata.content_files import FileContent, Manifest, ManifestContent, NewFile
from nightkeep.formats.iceberg.metadata.manifest_list import write_manifest_list
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_names
from nightkeep.formats.iceberg.metadata.manifests import write_manifest
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema, parse
from nightkeep.formats.paimon.metadata.avro import read_container, write_container
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.manifest_schemas import MANIFEST_ENTRY, MANIFEST_LIST
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.storage import LocalStorage

DAYS = 28
PER_MANIFEST = 20_000
FILES_OF_A_BUCKET = 10
TIME_MS = 1_767_268_800_000
SNAPSHOT = 1
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(3, "day", DateType(), required=False),
)
SPEC = PartitionSpec(PartitionField(source_id=3, field_id=1000, transform=IdentityTransform(), name="day"))
INT, TEXT = parse_type("INT NOT NULL"), parse_type("STRING")


def iceberg_table(folder: Path, files: int) -> str:
    """The address of a table of so many small files of some days, in manifests as a commit of ours writes them."""
    name = f"bench{uuid.uuid4().hex[:8]}"
    database = folder / "catalog.db"
    uri = f"sqlite:///{database}"
    os.environ[f"PYICEBERG_CATALOG__{name.upper()}__URI"] = uri
    catalog = load_catalog(name, uri=uri, warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    made = catalog.create_table("db.events", SCHEMA, partition_spec=SPEC, properties={"format-version": "2"})
    raw = json.loads(Path(made.metadata_location.removeprefix("file://")).read_text())
    location, schema, storage = str(raw["location"]), parse(raw, table="events"), LocalStorage("/")
    each = min(files, PER_MANIFEST)
    first = write_manifest(
        storage,
        f"{location}/metadata/{uuid.uuid4()}-m0.avro",
        [_iceberg_file(location, at) for at in range(each)],
        schema=schema,
        spec_id=0,
        content=ManifestContent.DATA,
        snapshot_id=SNAPSHOT,
        sequence_number=1,
    )
    manifests = [first, *(_again(first, number) for number in range(1, files // each))]
    listed = f"{location}/metadata/snap-{SNAPSHOT}-1-{uuid.uuid4()}.avro"
    write_manifest_list(
        storage,
        listed,
        manifests,
        format_version=2,
        snapshot_id=SNAPSHOT,
        parent_id=None,
        sequence_number=1,
        next_row_id=None,
    )
    written = f"{location}/metadata/00001-{uuid.uuid4()}.metadata.json"
    Path(written.removeprefix("file://")).write_text(json.dumps(raw | _with_snapshot(listed, files)))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE iceberg_tables SET metadata_location = ?", [written])
    return f"iceberg:{name}/db.events"


def _with_snapshot(listed: str, files: int) -> dict[str, Any]:
    summary = {"operation": "append", "total-data-files": str(files), "total-delete-files": "0"}
    snapshot = {
        "snapshot-id": SNAPSHOT,
        "sequence-number": 1,
        "timestamp-ms": TIME_MS,
        "manifest-list": listed,
        "summary": summary | {"total-records": str(files)},
        "schema-id": 0,
    }
    return {
        "last-sequence-number": 1,
        "last-updated-ms": TIME_MS,
        "current-snapshot-id": SNAPSHOT,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        "snapshot-log": [{"snapshot-id": SNAPSHOT, "timestamp-ms": TIME_MS}],
    }


def _again(first: Manifest, number: int) -> Manifest:
    """The manifest with other names of files, of the same length: encoding a million entries would take minutes."""
    folder, data = Path("/", first.name).parent, Path("/", first.name).read_bytes()
    path = folder / f"{uuid.uuid4()}-m{number}.avro"
    body = io.BytesIO(data)
    reader = fastavro.block_reader(body)
    head, sync = data[: body.tell()], data[body.tell() - 16 : body.tell()]
    parts = [head]
    for block in reader:
        content = cast(Any, block).bytes_.getvalue().replace(b"/00000-", b"/%05d-" % number)
        packed = CODECS["deflate"].pack(content)
        parts += [_long(block.num_records), _long(len(packed)), packed, sync]
    size = path.write_bytes(b"".join(parts))
    return replace(first, path=f"file://{path}", name=str(path).lstrip("/"), bytes=size)


def _long(number: int) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, "long", number)
    return sink.getvalue()


def _iceberg_file(location: str, number: int) -> NewFile:
    """As Java writes an entry: counts and bounds of each column."""
    day, bound = 20_454 + number % DAYS, number.to_bytes(8, "little")
    counts = {1: 1, 2: 1, 3: 1}
    bounds = {1: bound, 2: b"a%d" % number, 3: day.to_bytes(4, "little")}
    raw: Mapping[str, object] = {
        "content": 0,
        "file_path": f"{location}/data/day={day}/00000-{number:08d}-{number * 7919:016x}-00001.parquet",
        "file_format": "PARQUET",
        "partition": (day,),
        "record_count": 1,
        "file_size_in_bytes": number % 4_000_000 + 1000,
        "column_sizes": {1: 40, 2: 50, 3: 60},
        "value_counts": counts,
        "null_value_counts": dict.fromkeys(counts, 0),
        "nan_value_counts": {},
        "lower_bounds": bounds,
        "upper_bounds": bounds,
        "split_offsets": [4],
        "sort_order_id": 0,
    }
    return NewFile(FileContent.DATA, 0, raw)


def decode_iceberg(folder: Path) -> int:
    """The entries of all manifests, decoded into records: the limit of whatever reads them as such."""
    (metadata,) = folder.rglob("00001-*.metadata.json")
    schema: IcebergSchema = parse(json.loads(metadata.read_text()), table="events")
    names = entry_names(schema, 0)
    manifests = sorted(folder.rglob("*-m*.avro"))
    return sum(sum(1 for _ in read_records(path.read_bytes(), names, subject=path.name)) for path in manifests)


def paimon_table(folder: Path, files: int) -> str:
    """The address of a primary-key table of a tenth of the files, ten in a bucket: one of level 5, nine of level 0."""
    buckets = files // 10 // FILES_OF_A_BUCKET
    (folder / "schema").mkdir()
    (folder / "snapshot").mkdir()
    (folder / "manifest").mkdir()
    options = {"bucket": str(buckets), "deletion-vectors.enabled": "true"}
    fields = [{"id": 0, "name": "k", "type": "INT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"}]
    schema = {
        "version": 3,
        "id": 0,
        "fields": fields,
        "highestFieldId": 1,
        "partitionKeys": [],
        "primaryKeys": ["k"],
        "options": options,
        "comment": "",
        "timeMillis": TIME_MS,
    }
    (folder / "schema/schema-0").write_text(json.dumps(schema))
    per_manifest, metas, rows = max(1, PER_MANIFEST // FILES_OF_A_BUCKET), [], 0
    for number, start in enumerate(range(0, buckets, per_manifest)):
        some = range(start, min(buckets, start + per_manifest))
        entries = [_paimon_entry(bucket, at, buckets) for bucket in some for at in range(FILES_OF_A_BUCKET)]
        rows += sum(entry["_FILE"]["_ROW_COUNT"] for entry in entries)
        metas.append(_paimon_manifest(folder, f"manifest-{uuid.uuid4()}-{number}", entries))
    base, delta = (f"manifest-list-{uuid.uuid4()}-{number}" for number in range(2))
    sizes = [_paimon_file(folder, name, some, MANIFEST_LIST) for name, some in ((base, []), (delta, metas))]
    snapshot = {
        "version": 3,
        "id": 1,
        "schemaId": 0,
        "baseManifestList": base,
        "baseManifestListSize": sizes[0],
        "deltaManifestList": delta,
        "deltaManifestListSize": sizes[1],
        "commitUser": "bench",
        "commitIdentifier": 1,
        "commitKind": "APPEND",
        "timeMillis": TIME_MS,
        "totalRecordCount": rows,
        "deltaRecordCount": rows,
    }
    (folder / "snapshot/snapshot-1").write_text(json.dumps(snapshot))
    (folder / "snapshot/LATEST").write_text("1")
    (folder / "snapshot/EARLIEST").write_text("1")
    return f"paimon:{folder}"


def _paimon_manifest(folder: Path, name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    levels, buckets = ([entry["_FILE"]["_LEVEL"] for entry in entries], [entry["_BUCKET"] for entry in entries])
    return {
        "_VERSION": 2,
        "_FILE_NAME": name,
        "_FILE_SIZE": _paimon_file(folder, name, entries, MANIFEST_ENTRY),
        "_NUM_ADDED_FILES": len(entries),
        "_NUM_DELETED_FILES": 0,
        "_PARTITION_STATS": {"_MIN_VALUES": encode_row((), ()), "_MAX_VALUES": encode_row((), ()), "_NULL_COUNTS": []},
        "_SCHEMA_ID": 0,
        "_MIN_BUCKET": min(buckets),
        "_MAX_BUCKET": max(buckets),
        "_MIN_LEVEL": min(levels),
        "_MAX_LEVEL": max(levels),
        "_MIN_ROW_ID": None,
        "_MAX_ROW_ID": None,
    }


def _paimon_file(folder: Path, name: str, records: list[dict[str, Any]], schema: Any) -> int:
    return (folder / "manifest" / name).write_bytes(write_container(records, schema, "zstd", name=name))


def _paimon_entry(bucket: int, at: int, buckets: int) -> dict[str, Any]:
    low, high, number = at * 1000, at * 1000 + 999, bucket * FILES_OF_A_BUCKET + at
    keys = [encode_row((key,), (INT,)) for key in (low, high)]
    values = [encode_row((key, f"a{key}"), (INT, TEXT)) for key in (low, high)]
    file = {
        "_FILE_NAME": f"data-{number:08d}-{number * 7919:016x}-0.parquet",
        "_FILE_SIZE": 10_000 + number % 1000,
        "_ROW_COUNT": 1000,
        "_MIN_KEY": keys[0],
        "_MAX_KEY": keys[1],
        "_KEY_STATS": {"_MIN_VALUES": keys[0], "_MAX_VALUES": keys[1], "_NULL_COUNTS": [0]},
        "_VALUE_STATS": {"_MIN_VALUES": values[0], "_MAX_VALUES": values[1], "_NULL_COUNTS": [0, 0]},
        "_MIN_SEQUENCE_NUMBER": low,
        "_MAX_SEQUENCE_NUMBER": high,
        "_SCHEMA_ID": 0,
        "_LEVEL": 0 if at else 5,
        "_EXTRA_FILES": [],
        "_CREATION_TIME": TIME_MS,
        "_DELETE_ROW_COUNT": 0,
        "_EMBEDDED_FILE_INDEX": None,
        "_FILE_SOURCE": 0,
        "_VALUE_STATS_COLS": None,
        "_EXTERNAL_PATH": None,
        "_FIRST_ROW_ID": None,
        "_WRITE_COLS": None,
    }
    return {
        "_VERSION": 2,
        "_KIND": 0,
        "_PARTITION": encode_row((), ()),
        "_BUCKET": bucket,
        "_TOTAL_BUCKETS": buckets,
        "_FILE": file,
    }


def decode_paimon(folder: Path) -> int:
    """The entries of all manifests, decoded into records: the limit of whatever reads them as such."""
    paths = [path for path in (folder / "manifest").iterdir() if "-list-" not in path.name]
    return sum(len(read_container(path.read_bytes(), subject=path.name).records) for path in paths)
