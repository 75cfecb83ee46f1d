"""What hostile metadata asks for is refused by name and limit before it is read: no memory, no wait, no traceback."""

import gzip
import io
import json
import os
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.delta.hand_log import HandLog, add
from tests.formats.iceberg.content_made import schema_of

from nightkeep import limits
from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.documents import gunzip, parse_object
from nightkeep.errors import (
    MAX_LINE,
    MAX_PART,
    CorruptMetadata,
    EvidenceError,
    MissingFile,
    NightkeepError,
    PolicyError,
    RefusedTable,
    UsageError,
)
from nightkeep.formats.delta.metadata.snapshot import load
from nightkeep.formats.delta.retention.action_files import checkpoint_files, data_names
from nightkeep.formats.delta.retention.evidence import checkpoint_sum
from nightkeep.formats.iceberg.deletes.puffin import read_footer
from nightkeep.formats.iceberg.metadata.avro import Names, read_frame, read_records
from nightkeep.formats.iceberg.metadata.table_metadata import decode, summary_of
from nightkeep.formats.iceberg.metadata.types import parquet_field
from nightkeep.formats.paimon.metadata.avro import read_container
from nightkeep.formats.paimon.metadata.entries import read_list
from nightkeep.formats.paimon.metadata.manifest_schemas import MANIFEST_LIST
from nightkeep.formats.paimon.metadata.manifest_types import RecordKind, require_types
from nightkeep.formats.paimon.metadata.schema import option_bytes, parse_schema
from nightkeep.formats.paimon.metadata.snapshot_files import hinted, latest_id, numbered, parse_snapshot
from nightkeep.model import Address
from nightkeep.policy.yaml_source import parse
from nightkeep.sql_text.partition_filter import partition_filter
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.storage import LocalStorage

SYNC = bytes(range(16))
LONG = fastavro.parse_schema("long")
TWICE = 100 << 20


def written(schema: Any, value: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, schema, value)
    return sink.getvalue()


def container(schema: Any, *blocks: tuple[int, bytes], codec: str = "null") -> bytes:
    """An object container file of a schema and blocks that need not fit each other."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    meta = {"avro.schema": text, "avro.codec": codec.encode()}
    head = b"Obj\x01" + written({"type": "map", "values": "bytes"}, meta) + SYNC
    return head + b"".join(
        written(LONG, count) + written(LONG, len(content)) + content + SYNC for count, content in blocks
    )


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields]}


@contextmanager
def little_memory(most: int = TWICE) -> Iterator[None]:
    """Of Python's own objects."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def by_paimon(data: bytes) -> object:
    return read_container(data, subject="manifest/m")


def by_iceberg(data: bytes) -> object:
    return list(read_records(data, Names({}, {}), subject="manifest/m"))


def by_columns(data: bytes) -> object:
    return read_frame(data, Names({}, {}), subject="manifest/m")


READERS = pytest.mark.parametrize("read", [by_paimon, by_iceberg, by_columns])
SCHEMAS = {
    "a record that holds itself": record(("next", "r")),
    "a record that holds itself in a union": record(("next", ["null", "r"])),
    "records that hold each other": record(("a", {**record(("b", "r")), "name": "s"})),
    "an unknown type": record(("a", "nowhere")),
    "items that are null": record(("a", {"type": "array", "items": "null"})),
    "items of an empty record": record(("a", {"type": "array", "items": {**record(), "name": "e"}})),
    "items of a record of nulls": record(("a", {"type": "array", "items": {**record(("n", "null")), "name": "e"}})),
    "items of a fixed of no bytes": record(
        ("a", {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}})
    ),
    "items of nulls in objects": record(("a", {"type": "array", "items": {"type": {"type": "null"}}})),
    "a fixed of a negative size": record(("a", {"type": "fixed", "name": "f", "size": -1})),
    "a fixed size that no int holds": record(("a", {"type": "fixed", "name": "f", "size": 1 << 70})),
    "arrays within each other": json.dumps(record(("a", "X")))
    .replace('"X"', '{"type":"array","items":' * 400 + '"int"' + "}" * 400)
    .encode(),
    "brackets": b"[" * 200_000,
    "types of types": b'{"type":' * 200_000,
    "a schema of megabytes": json.dumps(record(*((f"f{n}", "int") for n in range(200_000)))).encode(),
    "references that double": record(
        ("z", {**record(), "name": "r0"}),
        *((f"f{n}", {**record(("a", f"r{n}"), ("b", f"r{n}")), "name": f"r{n + 1}"}) for n in range(40)),
    ),
    "fields that are text": {"type": "record", "name": "r", "fields": "abc"},
    "no schema of a record": "int",
    "no name": {"type": "record", "fields": []},
}


@READERS
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_nothing_can_be_decoded_by_is_corrupt(schema: Any, read: Callable[[bytes], object]) -> None:
    data = container(schema, (1, written(LONG, 1 << 40) + b"\0"))
    with little_memory():
        try:
            found = read(data)
        except CorruptMetadata as error:
            assert "manifest/m" in str(error)
        else:
            # Who reads columns says that it cannot, and records are read then.
            assert read is by_columns and found is None


@READERS
@pytest.mark.parametrize("count", [1 << 40, 1 << 62, -1, 11])
def test_more_records_than_bytes_are_corrupt(count: int, read: Callable[[bytes], object]) -> None:
    with pytest.raises(CorruptMetadata, match=r"manifest/m: expected .* records"):
        read(container(record(("n", "null")), (count, b"0123456789")))


@READERS
def test_blocks_without_records_are_corrupt(read: Callable[[bytes], object]) -> None:
    with pytest.raises(CorruptMetadata, match="records in a block of 1000 bytes"), little_memory():
        read(container(record(("a", "int")), *[(0, bytes(1000))] * 3))


@READERS
def test_records_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch, read: Callable[[bytes], object]) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_RECORDS", "1000")
    ones = container(record(("a", "boolean")), *[(500, bytes(500))] * 3)
    with pytest.raises(RefusedTable, match=r"manifest/m: 1500 records .* limit of 1000 \(NIGHTKEEP_MAX_RECORDS\)"):
        read(ones)
    monkeypatch.setenv("NIGHTKEEP_MAX_RECORDS", "1500")
    assert read(ones) is not None


@READERS
def test_what_records_may_take_in_memory_is_known_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[bytes], object]
) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_DECODED_BYTES", str(64 << 20))
    items = {"type": "array", "items": {**record(("x", "boolean")), "name": "e"}}
    count = 8_000_000
    with pytest.raises(RefusedTable, match="NIGHTKEEP_MAX_DECODED_BYTES"), little_memory():
        read(container(record(("a", items)), (1, written(LONG, count) + bytes(count) + b"\0")))


@READERS
@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy"])
def test_a_block_is_unpacked_as_far_as_it_may(
    monkeypatch: pytest.MonkeyPatch, codec: str, read: Callable[[bytes], object]
) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_BLOCK_BYTES", str(1 << 20))
    bomb = CODECS[codec].pack(bytes(64 << 20))
    with pytest.raises(CorruptMetadata), little_memory(16 << 20):
        read(container(record(("a", "boolean")), (64 << 20, bomb), codec=codec))


def test_json_packed_by_gzip_is_unpacked_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_DOCUMENT_BYTES", str(1 << 20))
    bomb = gzip.compress(bytes(64 << 20))
    with pytest.raises(RefusedTable, match=r"v1: .* limit of 1048576 \(NIGHTKEEP_MAX_DOCUMENT_BYTES\)"):
        decode(bomb, subject="v1")
    whole = gzip.compress(b'{"a":') + gzip.compress(b"1}") + bytes(10)
    assert gunzip(whole, subject="v1") == b'{"a":1}'
    for cut in range(2, len(whole) - 10):
        if cut != len(gzip.compress(b'{"a":')):
            with pytest.raises(CorruptMetadata, match="v1: expected"):
                gunzip(whole[:cut], subject="v1")
    with pytest.raises(CorruptMetadata):
        gunzip(whole + b"junk", subject="v1")


def test_a_puffin_footer_is_unpacked_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_DOCUMENT_BYTES", str(1 << 20))
    payload = pa.BufferOutputStream()
    with pa.CompressedOutputStream(payload, "lz4") as packed:
        packed.write(b'{"blobs": []}' + b" " * (64 << 20))
    data = payload.getvalue().to_pybytes()
    tail = struct.pack("<i", len(data)) + b"\x01\0\0\0PFA1"
    (tmp_path / "p.puffin").write_bytes(b"PFA1PFA1" + data + tail)
    with pytest.raises(RefusedTable, match="NIGHTKEEP_MAX_DOCUMENT_BYTES"):
        read_footer(LocalStorage(str(tmp_path)), "p.puffin")


DEEP = b"[" * 200_000
PARSERS: dict[str, Callable[[bytes], object]] = {
    "table metadata": lambda data: decode(data, subject="x"),
    "a document": lambda data: parse_object(data, subject="x"),
    "a snapshot": lambda data: parse_snapshot(data, subject="x"),
    "a schema": lambda data: parse_schema(data, subject="x"),
}


NO_JSON = [DEEP, b'{"a":' * 200_000, b"9" * 5000, b"\xff", b"", b"[]", b"null", b'"text"', b"NaN", b'{"a": "\\ud800']
NO_VERSION = [b'{"version": []}', b'{"version": 1e400}', b'{"version": 2.5}', b'{"version": true}', b'{"fields": 5}']


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
@pytest.mark.parametrize("data", NO_JSON)
def test_json_that_is_no_object_is_corrupt(parse: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(CorruptMetadata, match=r"^x: "):
        parse(data)


@pytest.mark.parametrize("parse", [PARSERS["a snapshot"], PARSERS["a schema"]])
@pytest.mark.parametrize("data", NO_VERSION)
def test_an_object_of_no_known_version_is_reported(parse: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises((CorruptMetadata, RefusedTable), match=r"^x: "):
        parse(data)


def test_names_of_snapshots_are_ascii_and_of_64_bits(tmp_path: Path) -> None:
    assert numbered("snapshot/snapshot-7", "snapshot-") == 7
    for name in ("snapshot-\u00b2", "snapshot-\u0663", "snapshot-", "snapshot-" + "9" * 200, "snapshot--1", "x-1"):
        assert numbered(name, "snapshot-") is None
    (tmp_path / "snapshot").mkdir()
    for name in ("snapshot-1", "snapshot-\u00b2", f"snapshot-{1 << 63}"):
        (tmp_path / "snapshot" / name).touch()
    storage = LocalStorage(str(tmp_path))
    assert latest_id(storage) == 1
    (tmp_path / "snapshot/LATEST").write_text("9" * 5000)
    with pytest.raises(CorruptMetadata, match="snapshot/LATEST: expected the number of a snapshot, found 5000 digits"):
        latest_id(storage)
    (tmp_path / "snapshot/LATEST").write_bytes("\u00b2".encode())
    assert hinted(storage, "snapshot/LATEST") is None


def test_a_number_of_an_option_has_an_end() -> None:
    told = {"version": 3, "id": 0, "fields": [], "partitionKeys": [], "primaryKeys": []}
    schema = parse_schema(json.dumps(told | {"options": {"a": "9" * 5000 + " mb"}}).encode(), subject="s")
    with pytest.raises(CorruptMetadata, match="option a"):
        option_bytes(schema, "a")


def test_a_schema_is_named_by_its_file() -> None:
    told = {"version": 3, "id": 0, "fields": [], "partitionKeys": ["p"], "primaryKeys": []}
    with pytest.raises(CorruptMetadata, match=r"^schema/schema-0: expected"):
        parse_schema(json.dumps(told).encode(), subject="schema/schema-0")


def test_a_summary_that_is_text_is_corrupt() -> None:
    with pytest.raises(CorruptMetadata, match="t: summary: expected an object of texts"):
        summary_of({"summary": "append"}, subject="t")
    assert summary_of({"summary": None}, subject="t") == {}


def special(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "a link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "a link to itself":
        path.symlink_to(path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "a link to a device", "a link to itself"])
@pytest.mark.parametrize("verb", ["read", "open"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str, verb: str) -> None:
    special(tmp_path / "name", kind)
    with pytest.raises((CorruptMetadata, MissingFile), match=r"/name: expected a (regular )?file.*, found"):
        getattr(LocalStorage(str(tmp_path)), verb)("name")


@pytest.mark.parametrize("verb", ["read", "open", "stat", "exists", "list", "delete"])
@pytest.mark.parametrize("name", ["a\0b", "x" * 256, "x/" * 3000 + "y", "\ud800", "../a", "/a"])
def test_names_that_no_file_can_have_are_corrupt(tmp_path: Path, name: str, verb: str) -> None:
    with pytest.raises(CorruptMetadata, match="expected a name below this folder"):
        getattr(LocalStorage(str(tmp_path)), verb)(name)


def test_a_file_where_a_folder_should_be_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(MissingFile):
        LocalStorage(str(tmp_path)).read("a/b")


def test_a_file_of_metadata_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as sink:
        sink.truncate(1 << 40)
    with pytest.raises(RefusedTable, match=r"/sparse: 1099511627776 bytes .* \(NIGHTKEEP_MAX_FILE_BYTES\)"):
        LocalStorage(str(tmp_path)).read("sparse")
    monkeypatch.setenv("NIGHTKEEP_MAX_FILE_BYTES", "many")
    with pytest.raises(UsageError, match="NIGHTKEEP_MAX_FILE_BYTES: expected a whole number, found 'many'"):
        LocalStorage(str(tmp_path)).read("sparse")


def test_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits.require_memory("t")
    monkeypatch.setenv("NIGHTKEEP_MAX_MEMORY_BYTES", "1000000")
    with pytest.raises(RefusedTable, match=r"t: [0-9]+ bytes of memory.*\(NIGHTKEEP_MAX_MEMORY_BYTES\)"):
        limits.require_memory("t")


def checkpoint(folder: Path, table: pa.Table) -> HandLog:
    log = HandLog(folder)
    log.commit(0, *log.head)
    pq.write_table(table, log.log / f"{0:020d}.checkpoint.parquet")
    return log


def test_a_checkpoint_of_nulls_is_counted_before_it_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_RECORDS", "100000")
    checkpoint(tmp_path, pa.table({"add": pa.nulls(200_000, pa.struct({"path": pa.string()}))}))
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(RefusedTable, match=r"checkpoint.parquet: 200000 records .*NIGHTKEEP_MAX_RECORDS"):
        load(Address("delta", str(tmp_path), "t"), storage)
    with pytest.raises(RefusedTable, match="NIGHTKEEP_MAX_RECORDS"):
        list(checkpoint_files(storage, f"_delta_log/{0:020d}.checkpoint.parquet"))


def test_a_checkpoint_is_unpacked_as_far_as_it_may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTKEEP_MAX_UNPACKED_BYTES", "100000")
    column = pa.array([{"path": "x" * 1000 + str(n)} for n in range(1000)])
    checkpoint(tmp_path, pa.table({"add": column}))
    with pytest.raises(RefusedTable, match="NIGHTKEEP_MAX_UNPACKED_BYTES"):
        load(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path)))


def test_an_add_column_that_is_no_struct_is_corrupt(tmp_path: Path) -> None:
    checkpoint(tmp_path, pa.table({"add": ["a", "b"]}))
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(CorruptMetadata, match=r"checkpoint.parquet: expected a checkpoint.*add is string"):
        load(Address("delta", str(tmp_path), "t"), storage)
    with pytest.raises(CorruptMetadata, match=r"checkpoint.parquet: expected a checkpoint.*add is string"):
        list(checkpoint_files(storage, f"_delta_log/{0:020d}.checkpoint.parquet"))
    with pytest.raises(CorruptMetadata, match=r"checkpoint.parquet: expected a checkpoint.*add is string"):
        checkpoint_sum(storage, [f"_delta_log/{0:020d}.checkpoint.parquet"], frozenset())


@pytest.mark.parametrize(
    "path", ["/" + "a/" * 60_000 + "b", "file:/" + "a/" * 60_000 + "b", "a/" * 60_000 + "b", "/\0"]
)
def test_a_path_has_the_length_of_a_path(tmp_path: Path, path: str) -> None:
    with pytest.raises(CorruptMetadata), little_memory():
        data_names(path)
    log = HandLog(tmp_path)
    log.commit(0, *log.head, add(path))
    with pytest.raises((CorruptMetadata, RefusedTable)) as failure:
        load(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path)))
    assert len(str(failure.value)) < 3 * MAX_PART


ERRORS = (
    CorruptMetadata("s" * 100_000, "e" * 100_000, "f\ud800\0" * 100_000),
    RefusedTable("t" * 100_000, "f" * 100_000, "a" * 100_000),
    UsageError("u" * 100_000),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_message_is_short_and_can_be_printed(error: NightkeepError) -> None:
    text = str(error)
    assert len(text) < 4 * MAX_PART + 100
    assert text.encode().isascii() and text.isprintable()
    assert isinstance(error, UsageError) or "100000 characters" in text or "300000 characters" in text


def test_every_line_of_a_message_is_cut_by_itself() -> None:
    lines = str(PolicyError("\n".join(["a" * 100_000, "short"]))).split("\n")
    assert len(lines) == 2 and len(lines[0]) <= MAX_LINE and lines[1] == "short"


def test_parts_of_evidence_are_cut_as_well() -> None:
    error = EvidenceError("s" * 10_000, "e", "f")
    assert len(error.subject) <= MAX_PART and str(type(error)(*error.__reduce__()[1])) == str(error)


@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 20_000 + "a", "{a: " * 20_000, "? " * 20_000, "#" * (17 << 20)])
def test_a_policy_of_brackets_is_reported(text: str) -> None:
    with pytest.raises(PolicyError, match=r"^tables.yaml:1: expected at most"):
        parse(text, "tables.yaml")


@pytest.mark.parametrize("value", ["!!bool foo", "!!timestamp x", "!!int ''", "!!float x", "9" * 5000, "=", "\0"])
def test_a_value_that_is_none_of_its_tag_is_reported(value: str) -> None:
    with pytest.raises(PolicyError, match=r"^tables.yaml:[12]: ") as failure:
        parse(f"version: 1\nname: {value}", "tables.yaml")
    assert len(str(failure.value)) <= MAX_LINE


def test_columns_of_records_that_end_too_early_are_none() -> None:
    """Polars says "failed to fill whole buffer", and not of what."""
    assert by_columns(container(record(("a", "double")), (1, bytes(3)))) is None
    with pytest.raises(CorruptMetadata, match="manifest/m: expected an Avro object container file"):
        by_iceberg(container(record(("a", "double")), (1, bytes(3))))


DEEP_CONDITION = "(" * 5000 + "a = 1" + ")" * 5000


@pytest.mark.parametrize("text", [DEEP_CONDITION, "not " * 5000 + "a = 1"])
def test_a_condition_of_parentheses_is_reported(text: str) -> None:
    with pytest.raises(UsageError, match="partition filter"):
        partition_filter(text, ("a",))
    with pytest.raises(UsageError, match="condition on rows"):
        rows_where(text, pa.schema({"a": pa.int64()}))


def test_a_column_partitions_a_table_once(tmp_path: Path) -> None:
    log = HandLog(tmp_path, partition_columns=("p", "p"))
    log.commit(0, *log.head, add("a", partitionValues={"p": "1"}))
    with pytest.raises(CorruptMetadata, match="partition columns"):
        load(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path)))
    column = {"id": 0, "name": "p", "type": "INT"}
    for keys in ("partitionKeys", "primaryKeys"):
        told = {"version": 3, "id": 0, "fields": [column], "partitionKeys": [], "primaryKeys": [], keys: ["p", "p"]}
        with pytest.raises(CorruptMetadata, match="every column once"):
            parse_schema(json.dumps(told).encode(), subject="schema/schema-0")


LIST = {"type": "list"}


@pytest.mark.parametrize(
    "kind", [LIST, {"type": "map"}, {**LIST, "element": 5}, 5, None, [], "fixed[" + "9" * 5000 + "]"]
)
def test_a_type_that_is_none_is_corrupt(kind: Any) -> None:
    with pytest.raises(CorruptMetadata, match=r"db.t: schema 0: expected a schema"):
        schema_of([("a", kind)])


def test_types_too_deep_within_each_other_are_corrupt() -> None:
    kind: Any = "int"
    for _ in range(400):
        kind = {"type": "list", "element-id": 2, "element": kind, "element-required": False}
    with pytest.raises(CorruptMetadata, match=r"db.t: schema 0"):
        schema_of([("a", kind)])


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
def test_half_a_character_is_corrupt(parse: Callable[[bytes], object]) -> None:
    with pytest.raises(CorruptMetadata, match="half a surrogate pair"):
        parse(b'{"version": 3, "a": ["\\ud83d"]}')
    assert parse_object(b'{"a": "\\ud83d\\ude00"}', subject="x") == {"a": "\U0001f600"}


@pytest.mark.parametrize("kind", ["decimal(99, 2)", "fixed[99999999999999999999999]"])
def test_a_type_that_arrow_cannot_hold_is_corrupt(kind: str) -> None:
    with pytest.raises(CorruptMetadata, match=r"column type|db.t: schema 0"):
        parquet_field(schema_of([("a", kind)]).current.fields[0])


TYPES = {"_FILE_SIZE": "boolean", "_FILE_NAME": "long", "_NUM_ADDED_FILES": "double", "_PARTITION_STATS": "bytes"}


@pytest.mark.parametrize(("name", "kind"), TYPES.items(), ids=TYPES)
def test_a_manifest_whose_fields_have_other_types_is_corrupt(tmp_path: Path, name: str, kind: str) -> None:
    fields = [{**each, "type": kind} if each["name"] == name else each for each in MANIFEST_LIST["fields"]]
    (tmp_path / "manifest").mkdir()
    (tmp_path / "manifest/list").write_bytes(container({**MANIFEST_LIST, "fields": fields}))
    with pytest.raises(CorruptMetadata, match=f"manifest/list: .*manifest list: expected {name} of type"):
        read_list(LocalStorage(str(tmp_path)), "list")
    (tmp_path / "manifest/list").write_bytes(container(MANIFEST_LIST))
    assert read_list(LocalStorage(str(tmp_path)), "list").records == ()


def test_types_that_are_called_by_their_name_are_manifests_too(tmp_path: Path) -> None:
    """As pypaimon 1 writes them: statistics are written out once."""
    stats = record(("_MIN_VALUES", "bytes"), ("_MAX_VALUES", "bytes"))
    entry = record(("_KEY_STATS", {**stats, "name": "SimpleStats"}), ("_VALUE_STATS", "SimpleStats"))
    require_types(record(("_FILE", {**entry, "name": "f"}), ("_KIND", "long")), RecordKind.MANIFEST)


NUMBERS = (
    "baseManifestListSize",
    "deltaManifestListSize",
    "changelogManifestListSize",
    "timeMillis",
    "deltaRecordCount",
)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [10**400, 1 << 63, -(1 << 63) - 1, True, "5", 0.5])
def test_a_number_of_a_snapshot_has_64_bits(name: str, value: object) -> None:
    raw: dict[str, object] = {
        "version": 3,
        "id": 1,
        "schemaId": 0,
        "baseManifestList": "a",
        "deltaManifestList": "b",
        "commitUser": "u",
        "commitIdentifier": 1,
        "commitKind": "APPEND",
        "timeMillis": 1,
        "totalRecordCount": 0,
        "baseManifestListSize": None,
    }
    assert parse_snapshot(json.dumps(raw).encode(), subject="s")["id"] == 1
    with pytest.raises(CorruptMetadata, match=f"s: expected {name}, of"):
        parse_snapshot(json.dumps(raw | {name: value}).encode(), subject="s")
