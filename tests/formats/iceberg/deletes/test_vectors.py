"""Deletion vectors: Java's bytes both ways, and no vector out of bytes that are not whole."""

import dataclasses
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.next_snapshots import NextSnapshot
from tests.formats.iceberg.shown import STORAGE, read_vector

from nightkeep.encodings.roaring import MAX_POSITION
from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter, decode, encode
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.new_locations import data_location

MAGIC = bytes.fromhex("d1d33964")
POSITIONS = st.integers(0, MAX_POSITION) | st.integers(0, 300_000)


def blob(bitmap: bytes, magic: bytes = MAGIC) -> bytes:
    """With a size and a checksum that hold."""
    payload = magic + bitmap
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


@st.composite
def sets(draw: st.DrawFn) -> set[int]:
    """Scattered positions and runs of them, so that every kind of container is there."""
    held: set[int] = set()
    for start in draw(st.lists(POSITIONS, max_size=4)):
        length, step = draw(st.integers(1, 6_000)), draw(st.integers(1, 3))
        held |= {position for position in range(start, start + length, step) if position <= MAX_POSITION}
    return held


@given(sets())
def test_sets_survive(held: set[int]) -> None:
    content = encode(BitMap64(held))
    assert set(decode(content, subject="v")) == held
    assert content[4:8] == MAGIC


@given(st.lists(st.sets(st.integers(0, 2**32 - 1), max_size=20), max_size=4))
def test_empty_bitmaps_are_read(buckets: list[set[int]]) -> None:
    """Java lists a bitmap for every key up to the last."""
    parts = b"".join(struct.pack("<I", key) + BitMap(bucket).serialize() for key, bucket in enumerate(buckets))
    expected = {key << 32 | low for key, bucket in enumerate(buckets) for low in bucket}
    assert set(decode(blob(struct.pack("<Q", len(buckets)) + parts), subject="v")) == expected


def test_equal_sets_give_equal_bytes_and_arguments_are_left_alone() -> None:
    run, filled = BitMap64(range(5_000)), BitMap64()
    for position in reversed(range(5_000)):
        filled.add(position)
    before = filled.serialize()
    assert encode(run) == encode(filled) and len(encode(run)) < 100
    assert filled.serialize() == before


def test_a_position_that_java_cannot_hold_is_neither_written_nor_read() -> None:
    beyond = BitMap64([MAX_POSITION + 1])
    with pytest.raises(ValueError, match="positions up to"):
        encode(beyond)
    with pytest.raises(CorruptMetadata, match="positions up to"):
        decode(blob(beyond.serialize()), subject="v")


@given(st.binary(max_size=80))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    for content in (data, blob(data), blob(struct.pack("<QI", 1, 0) + data), blob(data, b"")):
        try:
            found = decode(content, subject="v")
        except CorruptMetadata as error:
            assert error.subject == "v"
        else:
            assert decode(encode(found), subject="v") == found


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["vectors", "vectors_named_parquet", "upserts_v3", "upgraded", "merge_on_read_v3"])
def test_engines_blobs_come_out_of_our_encoder_byte_by_byte(made: Callable[[str], Table], name: str) -> None:
    after = NextSnapshot.of(made(name))
    rows = {file.path: file.rows for file in after.data_files()}
    vectors = [entry.file for entry in after.live(FileContent.POSITION_DELETES) if entry.file.is_vector]
    assert vectors
    for file in vectors:
        assert file.referenced is not None and file.content_offset is not None and file.content_bytes is not None
        bitmap = read_vector(STORAGE, file, rows[file.referenced])
        content = Path(f"/{file.name}").read_bytes()[file.content_offset :][: file.content_bytes]
        assert encode(bitmap) == content and bitmap


@pytest.fixture
def three_files(iceberg: Warehouse, iceberg_java: IcebergJava) -> Table:
    """Three partitions of a table of version 3, a data file of 70,000 rows in the first."""
    table = iceberg.table()
    columns = (("id", "long"), ("day", "int"))
    iceberg_java.create(table, columns, Layout((("day", "identity"),), 3))
    iceberg_java.append(table, [[n, 0] for n in range(70_000)])
    iceberg_java.append(table, [[n, 1 + n % 2] for n in range(20)])
    return table


def test_engines_hide_what_our_vectors_hide(three_files: Table, iceberg_java: IcebergJava) -> None:
    """An array, a bitset and a run in one Puffin file, one blob after the other."""
    after = NextSnapshot.of(three_files)
    files = sorted(after.data_files(), key=lambda file: file.partition)  # type: ignore[arg-type,return-value]
    hidden = [BitMap64(range(0, 70_000, 3)), BitMap64([0, 3, 9]), BitMap64(range(2, 9))]
    location = data_location(after.schema, 0, files[0].partition, "nk-deletes.puffin")
    writer = PuffinVectorWriter(STORAGE, location)
    for file, bitmap in zip(files, hidden, strict=True):
        writer.add(file, bitmap)
    added = writer.close()

    copy = after.registered(iceberg_java, [*after.parent.manifests, *after.manifests(added)], "delete")

    first, *others = (
        [n for n in range(70_000) if n % 3],
        [n for at, n in enumerate(range(0, 20, 2)) if at not in (0, 3, 9)],
        [n for at, n in enumerate(range(1, 20, 2)) if not 2 <= at < 9],
    )
    expected = [[n, 0] for n in first] + [[n, day] for day, part in enumerate(others, 1) for n in part]
    assert sorted(map(list, iceberg_java.read(copy).rows)) == sorted(expected)
    assert sorted(map(list, pyiceberg_read(copy.metadata).rows)) == sorted(expected)
    entries = [entry for entry in iceberg_java.entries(copy) if entry["content"] == 1]
    assert [e["record_count"] for e in entries] == [len(bitmap) for bitmap in hidden]
    assert {e["file_path"] for e in entries} == {location} and {e["file_format"] for e in entries} == {"PUFFIN"}
    assert [e["referenced_data_file"] for e in entries] == [file.path for file in files]
    assert [e["partition"] for e in entries] == [[0], [1], [2]]
    again = [entry.file for entry in NextSnapshot.of(copy).live(FileContent.POSITION_DELETES)]
    assert [read_vector(STORAGE, v, f.rows) for v, f in zip(again, files, strict=True)] == hidden


# Hostile files


def a_file(path: str = "/d/f.parquet", rows: int = 100, **changes: Any) -> ContentFile:
    told = {"content": FileContent.DATA, "format": "parquet", "spec_id": 0, "partition": (), "bytes": 1}
    numbers = {"sequence_number": 1, "file_sequence_number": 1, "snapshot_id": 1}
    return ContentFile(path=path, name=path[1:], rows=rows, **{**told, **numbers, **changes})


def added(file: Any) -> ContentFile:
    """As the next reader of the manifest sees a new vector."""
    raw, place = (
        file.raw,
        {"content_offset": file.raw["content_offset"], "referenced": file.raw["referenced_data_file"]},
    )
    place |= {"content_bytes": raw["content_size_in_bytes"], "bytes": raw["file_size_in_bytes"], "raw": raw}
    return a_file(file.path, raw["record_count"], content=FileContent.POSITION_DELETES, format="puffin", **place)


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[tuple[Path, ContentFile, BitMap64]]:
    """A file of two vectors, of which the second is looked at."""
    held = BitMap64([*range(40, 60), 99])
    writer = PuffinVectorWriter(STORAGE, f"{tmp_path}/v.puffin")
    writer.add(a_file("/d/0.parquet"), BitMap64([1, 2]))
    writer.add(a_file("/d/1.parquet"), held)
    _, second = writer.close()
    yield tmp_path / "v.puffin", added(second), held


def test_a_file_may_have_any_name(stored: tuple[Path, ContentFile, BitMap64]) -> None:
    path, file, held = stored
    path.rename(path.with_suffix(".parquet"))
    named = dataclasses.replace(file, name=file.name.replace(".puffin", ".parquet"))
    assert read_vector(STORAGE, named, 100) == held


def test_no_truncated_file_gives_a_vector(stored: tuple[Path, ContentFile, BitMap64]) -> None:
    path, file, held = stored
    data = path.read_bytes()
    assert read_vector(STORAGE, file, 100) == held
    for length in range(len(data)):
        path.write_bytes(data[:length])
        for size in (len(data), length):
            with pytest.raises(CorruptMetadata, match=r"v\.puffin"):
                read_vector(STORAGE, dataclasses.replace(file, bytes=size), 100)
    path.unlink()
    with pytest.raises(MissingFile, match=r"v\.puffin"):
        read_vector(STORAGE, file, 100)


@pytest.mark.slow
def test_no_flipped_bit_gives_another_vector(stored: tuple[Path, ContentFile, BitMap64]) -> None:
    path, file, held = stored
    data = path.read_bytes()
    assert file.content_offset is not None and file.content_bytes is not None
    end = file.content_offset + file.content_bytes
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert read_vector(STORAGE, file, 100) == held
            # Bytes of the other vector, and of the footer's words about it and about the file.
            assert not file.content_offset <= bit // 8 < end
        except CorruptMetadata:
            assert bit // 8 < 4 or bit // 8 >= file.content_offset


@pytest.mark.parametrize(
    "change",
    [
        {"content_offset": 4},
        {"content_offset": 5},
        {"content_offset": 0},
        {"content_offset": 10**9},
        {"content_bytes": 1},
        {"content_bytes": 10**9},
        {"rows": 20},
        {"bytes": 5},
        {"referenced": "/d/0.parquet"},
        {"referenced": None},
        {"content_offset": None},
        {"content_bytes": None},
        {"format": "parquet"},
        {"content": FileContent.DATA},
    ],
)
def test_no_entry_that_states_otherwise_gives_a_vector(
    stored: tuple[Path, ContentFile, BitMap64], change: dict[str, Any]
) -> None:
    _, file, _ = stored
    with pytest.raises(CorruptMetadata):
        read_vector(STORAGE, dataclasses.replace(file, **change), 100)


@pytest.fixture
def bare(tmp_path: Path) -> tuple[Path, ContentFile, BitMap64]:
    """Two vectors without the Puffin wrapper, as older DuckDB wrote them: only the manifest states where they are."""
    held = BitMap64([*range(40, 60), 99])
    first, second = encode(BitMap64([1, 2])), encode(held)
    path = tmp_path / "v.puffin"
    path.write_bytes(first + second)
    place = {"content_offset": len(first), "content_bytes": len(second), "bytes": len(first) + len(second)}
    told = {"content": FileContent.POSITION_DELETES, "format": "puffin", "referenced": "/d/1.parquet", **place}
    return path, a_file(str(path), 21, **told), held


def test_a_vector_without_a_puffin_wrapper_is_read_by_its_place_and_checksum(
    bare: tuple[Path, ContentFile, BitMap64],
) -> None:
    _, file, held = bare
    assert read_vector(STORAGE, file, 100) == held


def test_no_vector_without_a_wrapper_is_another_than_its_entry_states(bare: tuple[Path, ContentFile, BitMap64]) -> None:
    path, file, _ = bare
    data, start = path.read_bytes(), file.content_offset or 0
    changes: list[dict[str, Any]] = [
        {"content_offset": 0},
        {"content_offset": start + 1},
        {"content_offset": -1},
        {"content_offset": 10**9},
        {"content_bytes": 8},
        {"content_bytes": 10**9},
        {"content_bytes": -1},
        {"rows": 20},
        {"bytes": 5},
    ]
    for change in changes:
        with pytest.raises(CorruptMetadata):
            read_vector(STORAGE, dataclasses.replace(file, **change), 100)
    for bit in range(8 * start, 8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(CorruptMetadata):
            read_vector(STORAGE, file, 100)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        for size in (len(data), length):
            with pytest.raises(CorruptMetadata):
                read_vector(STORAGE, dataclasses.replace(file, bytes=size), 100)
    path.write_bytes(data)
    with pytest.raises(CorruptMetadata):
        read_vector(STORAGE, file, 99)


def test_a_damaged_file_is_named_by_its_whole_path(stored: tuple[Path, ContentFile, BitMap64]) -> None:
    path, file, _ = stored
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptMetadata) as damaged:
        read_vector(STORAGE, file, 100)
    assert damaged.value.subject == str(path)


def test_a_file_that_lost_one_end_of_its_wrapper_is_no_bare_vector(stored: tuple[Path, ContentFile, BitMap64]) -> None:
    path, file, _ = stored
    data = path.read_bytes()
    for changed in (b"XXXX" + data[4:], data[:-4] + b"XXXX"):
        path.write_bytes(changed)
        with pytest.raises(CorruptMetadata, match=r"PFA1|magic"):
            read_vector(STORAGE, file, 100)


def test_positions_beyond_the_file_are_refused(stored: tuple[Path, ContentFile, BitMap64]) -> None:
    _, file, held = stored
    assert read_vector(STORAGE, file, None) == held
    with pytest.raises(CorruptMetadata, match=r"positions below the 99 rows of /d/1\.parquet, found 99"):
        read_vector(STORAGE, file, 99)


FOOTER_LIES: list[dict[str, Any]] = [
    {"type": "apache-datasketches-theta-v1"},
    {"length": 3},
    {"compression-codec": "zstd"},
    {"properties": {"referenced-data-file": "/d/0.parquet", "cardinality": "21"}},
    {"properties": {"referenced-data-file": "/d/1.parquet", "cardinality": "20"}},
    {"properties": {}},
    {"offset": "4"},
    {"fields": None},
    {"snapshot-id": "x"},
    {"properties": {"a": 1}},
    {"offset": 10**6},
    {"offset": -1},
    {"length": -1},
]


@pytest.mark.parametrize("lie", FOOTER_LIES)
def test_no_footer_that_states_otherwise_gives_a_vector(
    stored: tuple[Path, ContentFile, BitMap64], lie: dict[str, Any]
) -> None:
    path, file, held = stored
    data = path.read_bytes()
    (length,) = struct.unpack("<i", data[-12:-8])
    blobs, footer = data[: -12 - length], json.loads(data[-12 - length : -12])

    def read(changed: dict[str, Any]) -> BitMap64:
        text = json.dumps(changed).encode()
        whole = blobs + text + struct.pack("<i", len(text)) + data[-8:]
        path.write_bytes(whole)
        return read_vector(STORAGE, dataclasses.replace(file, bytes=len(whole)), 100)

    assert read(footer) == held
    footer["blobs"][1] |= lie
    with pytest.raises(CorruptMetadata):
        read(footer)


def test_a_vector_that_makes_no_sense_is_not_written(tmp_path: Path) -> None:
    writer = PuffinVectorWriter(STORAGE, f"{tmp_path}/v.puffin")
    writer.add(a_file(), BitMap64([5]))
    for file, bitmap in ((a_file(), BitMap64([6])), (a_file("/g"), BitMap64()), (a_file("/g"), BitMap64([100]))):
        with pytest.raises(ValueError, match="expected"):
            writer.add(file, bitmap)
    assert not list(tmp_path.iterdir()) and len(writer.close()) == 1
    assert PuffinVectorWriter(STORAGE, f"{tmp_path}/none.puffin").close() == () and len(list(tmp_path.iterdir())) == 1
