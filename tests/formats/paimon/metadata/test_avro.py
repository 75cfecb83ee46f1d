"""Avro containers: what Java wrote is read whole, and nothing of a record is lost by writing it again."""

import io
import json
import math
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.formats.paimon import golden

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.avro_schemas import Schema
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.avro import Container, read_container, write_container
from nightkeep.formats.paimon.metadata.binary_row import decode_row
from nightkeep.formats.paimon.metadata.manifest_schemas import INDEX_MANIFEST, MANIFEST_ENTRY, MANIFEST_LIST
from nightkeep.formats.paimon.metadata.manifest_types import RecordKind
from nightkeep.formats.paimon.metadata.record_values import values_of
from nightkeep.formats.paimon.metadata.types import parse_type

FILES = {"manifest-list.avro": MANIFEST_LIST, "manifest.avro": MANIFEST_ENTRY, "index-manifest.avro": INDEX_MANIFEST}
SEEN_BY_JAVA = golden.read_json("manifests.json")


def _read(name: str) -> Container:
    return read_container(golden.read(name), subject=name)


@pytest.mark.parametrize("name", FILES)
def test_our_schemas_are_those_java_writes(name: str) -> None:
    assert json.dumps(_read(name).schema) == json.dumps(FILES[name])
    assert json.dumps(FILES[name], separators=(",", ":")).encode() in golden.read(name)


def test_manifest_list_as_java_reads_it() -> None:
    for record, seen in zip(_read("manifest-list.avro").records, SEEN_BY_JAVA["manifest_list"], strict=True):
        stats = record["_PARTITION_STATS"]
        assert stats["_MIN_VALUES"].hex() == seen.pop("_PARTITION_MIN")
        assert stats["_MAX_VALUES"].hex() == seen.pop("_PARTITION_MAX")
        assert {name: record[name] for name in seen} == seen


def test_manifest_as_java_reads_it() -> None:
    # Java's reader groups entries by partition; within one, order is the file's.
    records = sorted(_read("manifest.avro").records, key=lambda record: record["_PARTITION"])
    for record, seen in zip(records, SEEN_BY_JAVA["manifest"], strict=True):
        flat = {**record, **record["_FILE"]}
        for name in ("_PARTITION", "_MIN_KEY", "_MAX_KEY"):
            flat[name] = flat[name].hex()
        assert {name: flat[name] for name in seen} == seen
        assert type(flat["_CREATION_TIME"]) is int


def test_index_manifest_as_java_reads_it() -> None:
    for record, seen in zip(_read("index-manifest.avro").records, SEEN_BY_JAVA["index_manifest"], strict=True):
        ranges = [
            [item["f0"], item["f1"], item["f2"], item["_CARDINALITY"]] for item in record["_DELETIONS_VECTORS_RANGES"]
        ]
        assert ranges == seen.pop("_RANGES")
        assert record["_PARTITION"].hex() == seen.pop("_PARTITION")
        assert {name: record[name] for name in seen} == seen


def test_rows_inside_java_manifests_decode() -> None:
    columns = ("DATE", "STRING", "BIGINT", "DECIMAL(12, 2)", "STRING", "TIMESTAMP(6)")
    types = [parse_type(text) for text in columns]
    (record,) = (
        record
        for record in _read("manifest.avro").records
        if record["_FILE"]["_LEVEL"] == 4 and b"eu:west" in record["_PARTITION"]
    )
    assert decode_row(record["_PARTITION"], types[:2]) == (19_724, "eu:west")
    stats = record["_FILE"]["_VALUE_STATS"]
    row = (19_724, "eu:west", 3, Decimal("3.00"), "changed", 1_704_164_645_123_459_000)
    assert decode_row(stats["_MIN_VALUES"], types) == decode_row(stats["_MAX_VALUES"], types) == row


@pytest.mark.parametrize("codec", ["zstandard", "zstd", "ZSTD", "deflate", "snappy", "null", "none"])
@pytest.mark.parametrize("name", FILES)
def test_round_trip_keeps_everything(name: str, codec: str) -> None:
    container = _read(name)
    again = read_container(write_container(container.records, container.schema, codec), subject=name)
    assert (again.schema, again.records) == (container.schema, container.records)
    assert again.codec == {"zstd": "zstandard", "none": "null"}.get(codec.lower(), codec)


@pytest.mark.parametrize("codec", ["zstandard", "deflate", "null"])
def test_equal_records_give_equal_bytes(codec: str) -> None:
    container = _read("manifest.avro")
    assert write_container(container.records, container.schema, codec) == write_container(
        list(container.records), json.loads(json.dumps(container.schema)), codec
    )


def test_another_reader_sees_logical_types() -> None:
    container = _read("manifest.avro")
    data = write_container(container.records, container.schema, "null")
    seen: Any = list(fastavro.reader(io.BytesIO(data)))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert [(record["_FILE"]["_CREATION_TIME"] - epoch) // timedelta(milliseconds=1) for record in seen] == [
        record["_FILE"]["_CREATION_TIME"] for record in container.records
    ]


def test_a_union_with_null_as_root_is_read_as_its_record() -> None:
    """Paimon to 0.8 writes it."""
    container = _read("manifest.avro")
    schema: Any = ["null", container.schema]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), _as_logical(container), codec="deflate")
    again = read_container(out.getvalue(), subject="old", kind=RecordKind.MANIFEST)
    assert again.records == container.records
    assert again.schema["type"] == "record" and len(again.schema["fields"]) == len(container.schema["fields"])
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [None])
    with pytest.raises(CorruptMetadata, match="expected records, found null for a record"):
        read_container(out.getvalue(), subject="old", kind=RecordKind.MANIFEST)


def test_fields_that_a_release_did_not_know_are_null() -> None:
    container = _read("index-manifest.avro")
    schema = json.loads(json.dumps(container.schema))
    schema["fields"] = [f for f in schema["fields"] if f["name"] not in ("_EXTERNAL_PATH", "_GLOBAL_INDEX")]
    (ranges,) = (field["type"][1]["items"][1] for field in schema["fields"] if "RANGES" in field["name"])
    ranges["fields"] = [field for field in ranges["fields"] if field["name"] != "_CARDINALITY"]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), container.records)
    again = read_container(out.getvalue(), subject="old", kind=RecordKind.INDEX)
    for record, old in zip(container.records, again.records, strict=True):
        bare = [{**item, "_CARDINALITY": None} for item in record["_DELETIONS_VECTORS_RANGES"]]
        assert old == {**record, "_DELETIONS_VECTORS_RANGES": bare}
    assert [*map(values_of, again.records)] == [*map(values_of, _renulled(again.records))]
    assert values_of(again.records[0]) != values_of(container.records[0])


def _renulled(records: tuple[Record, ...]) -> list[Record]:
    """The same values in another order, with a field more."""
    return [{"_LATER": None, **dict(reversed(record.items()))} for record in records]


def _as_logical(container: Container) -> list[Record]:
    """With times of creation as fastavro wants them."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        {**r, "_FILE": {**r["_FILE"], "_CREATION_TIME": epoch + timedelta(milliseconds=r["_FILE"]["_CREATION_TIME"])}}
        for r in container.records
    ]


def _with_unknown_fields(container: Container) -> tuple[Schema, list[Record]]:
    """The manifest of a future Paimon: new fields in the entry and in its file, one of a logical type."""
    schema = json.loads(json.dumps(container.schema))
    extra: list[Any] = [
        {"name": "_FUTURE", "type": ["null", {"type": "map", "values": "long"}], "default": None},
        {"name": "_SEEN_AT", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "_SHARE", "type": "double"},
        {"name": "_PRICE", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "_DAY", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "_MODE", "type": {"type": "enum", "name": "mode", "symbols": ["A", "B"]}},
    ]
    schema["fields"] += extra
    file = next(field for field in schema["fields"] if field["name"] == "_FILE")
    file["type"]["fields"].append({"name": "_COLOUR", "type": ["null", "string"], "default": None})
    values = {"_FUTURE": {"a": 1}, "_SEEN_AT": -1, "_SHARE": 0.1, "_PRICE": b"\x01\xff", "_DAY": -719_163, "_MODE": "B"}
    records = [{**record, **values, "_FILE": {**record["_FILE"], "_COLOUR": "blue"}} for record in container.records]
    return schema, records


def test_fields_we_have_never_heard_of_survive() -> None:
    schema, records = _with_unknown_fields(_read("manifest.avro"))
    first = read_container(write_container(records, schema), subject="manifest")
    assert list(first.records) == records
    again = read_container(write_container(first.records, first.schema), subject="manifest")
    assert again == first


def test_foreign_blocks_and_metadata_are_read() -> None:
    """fastavro's own writer: other block sizes, another marker, metadata of its own."""
    container = _read("manifest-list.avro")
    out = io.BytesIO()
    metadata = {"writer": "someone else"}
    fastavro.writer(out, container.schema, container.records, metadata=metadata, codec="deflate", sync_interval=1)
    again = read_container(out.getvalue(), subject="manifest-list")
    assert (again.schema["fields"], again.records) == (container.schema["fields"], container.records)
    assert again.metadata == {"writer": b"someone else"}


def test_many_blocks() -> None:
    container = _read("manifest.avro")
    records = [{**record, "_BUCKET": k} for k in range(300) for record in container.records]
    again = read_container(write_container(records, container.schema), subject="manifest")
    assert list(again.records) == records


def test_no_records() -> None:
    again = read_container(write_container([], MANIFEST_ENTRY), subject="manifest")
    assert (again.records, again.schema) == ((), MANIFEST_ENTRY)


def test_a_missing_field_takes_its_default() -> None:
    record = _read("index-manifest.avro").records[0]
    less = {name: value for name, value in record.items() if name != "_EXTERNAL_PATH"}
    assert read_container(write_container([less], INDEX_MANIFEST), subject="index").records == (record,)


def test_empty_and_missing_ranges_stay_apart() -> None:
    record = _read("index-manifest.avro").records[0]
    records = [{**record, "_DELETIONS_VECTORS_RANGES": ranges} for ranges in ([], None)]
    again = read_container(write_container(records, INDEX_MANIFEST), subject="index").records
    assert [item["_DELETIONS_VECTORS_RANGES"] for item in again] == [[], None]


def test_records_that_would_lose_data_are_refused() -> None:
    record = _read("manifest.avro").records[0]
    with pytest.raises(ValueError, match="more fields than the schema specifies: _MORE"):
        write_container([{**record, "_MORE": 1}], MANIFEST_ENTRY)
    with pytest.raises(ValueError, match="_BUCKET is specified in the schema but missing"):
        write_container([{name: value for name, value in record.items() if name != "_BUCKET"}], MANIFEST_ENTRY)
    with pytest.raises(ValueError, match="expected one of null, deflate, snappy, zstandard, found xz"):
        write_container([record], MANIFEST_ENTRY, "xz")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "an Avro object container file"),
        (lambda data: b"PAR1" + data[4:], r"magic b'Obj\\x01', found that of a Parquet file"),
        (lambda data: data[:-1], "an Avro object container file"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "the sync marker of its header, found another$"),
        (lambda data: data + b"\x00", "an Avro object container file"),
        (lambda data: data.replace(b"zstandard", b"snappyyyy", 1), "a codec of .*, found a text of 9 characters$"),
        (lambda data: data.replace(b'"long"', b'"lung"', 1), "an Avro object container file"),
        (lambda data: data.replace(b'"fields":', b'"field!":', 1), "an Avro object container file.*no bytes"),
        (lambda data: data.replace(b'{"type":"record"', b'{"type":"fixedd"', 1), "a record schema"),
    ],
)
def test_damage_is_named(damage: Any, message: str) -> None:
    with pytest.raises(CorruptMetadata, match=rf"^manifest/m-0: expected .*{message}"):
        read_container(damage(golden.read("manifest.avro")), subject="manifest/m-0")


def _varint(number: int) -> bytes:
    out = bytearray()
    zigzag = number << 1 ^ number >> 63
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


@pytest.mark.parametrize("count", [-1, 2, 4, 2**62])
def test_a_block_that_miscounts_its_records(count: int) -> None:
    """Three records of one byte each."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
    data = write_container([{"a": 1}, {"a": 2}, {"a": 3}], schema, "null")
    sync = data[-16:]
    whole = _varint(3) + _varint(3) + bytes([2, 4, 6]) + sync
    assert data.endswith(whole)
    with pytest.raises(CorruptMetadata):
        read_container(data.removesuffix(whole) + _varint(count) + whole[1:], subject="m")


@given(st.binary(max_size=400))
@example(b"Obj\x01")
@example(b"Obj\x01" + b"\xff" * 40)
def test_any_bytes_parse_or_raise_corrupt_metadata(data: bytes) -> None:
    for hostile in (data, b"Obj\x01" + data):
        with pytest.raises(CorruptMetadata, match=r"^fuzz: expected"):
            read_container(hostile, subject="fuzz")


@given(st.sampled_from(sorted(FILES)), st.sampled_from(["zstandard", "deflate", "null"]), st.data())
def test_damaged_files_parse_or_raise_corrupt_metadata(name: str, codec: str, data: st.DataObject) -> None:
    container = _read(name)
    damaged = bytearray(write_container(container.records, container.schema, codec))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = read_container(bytes(damaged), subject="fuzz")
    except CorruptMetadata as error:
        assert error.subject == "fuzz"
    else:
        assert isinstance(read.records, tuple)


INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
RANGES = st.lists(st.fixed_dictionaries({"f0": st.text(), "f1": INTS, "f2": INTS, "_CARDINALITY": st.none() | LONGS}))
INDEX_RECORDS = st.fixed_dictionaries(
    {
        "_VERSION": INTS,
        "_KIND": INTS,
        "_PARTITION": st.binary(),
        "_BUCKET": INTS,
        "_INDEX_TYPE": st.text(),
        "_FILE_NAME": st.text(),
        "_FILE_SIZE": LONGS,
        "_ROW_COUNT": LONGS,
        "_DELETIONS_VECTORS_RANGES": st.none() | RANGES,
        "_EXTERNAL_PATH": st.none() | st.text(),
        "_GLOBAL_INDEX": st.none(),
    }
)


@given(st.lists(INDEX_RECORDS, max_size=6), st.sampled_from(["zstandard", "deflate", "null"]))
def test_any_records_survive(records: list[Record], codec: str) -> None:
    again = read_container(write_container(records, INDEX_MANIFEST, codec), subject="index")
    assert list(again.records) == records


@given(st.floats(width=32))
def test_numbers_keep_their_bits(number: float) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "float"}]}
    (record,) = read_container(write_container([{"a": number}], schema), subject="m").records
    assert struct.pack("<f", record["a"]) == struct.pack("<f", number) or math.isnan(number)
