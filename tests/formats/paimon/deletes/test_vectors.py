"""Deletion vectors: Java's bytes both ways, and no vector out of a record that is not whole."""

import dataclasses
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64
from tests.formats.paimon import golden

from nightkeep.encodings.roaring import MAX_POSITION
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.deletes.vectors import MAX_POSITION_32, BitmapKind, Vector, decode_vector, encode_vectors
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange

FILES = {document["file"]: document for document in golden.read_json("vectors.json")}
BITMAPS: dict[BitmapKind, type[Vector]] = {BitmapKind.BITMAP32: BitMap, BitmapKind.BITMAP64: BitMap64}


def _kind(document: dict[str, Any]) -> BitmapKind:
    return BitmapKind[document["kind"]]


def _ranges(document: dict[str, Any]) -> list[VectorRange]:
    return [
        VectorRange(item["data_file"], item["offset"], item["length"], item["cardinality"])
        for item in document["ranges"]
    ]


def _vectors(document: dict[str, Any]) -> list[tuple[str, Vector]]:
    """Built from ranges, whose containers are not those of Java's row by row."""
    bitmap = BITMAPS[_kind(document)]
    vectors = []
    for item in document["ranges"]:
        vector = bitmap()
        for start, stop, step in item["positions"]:
            vector |= bitmap(range(start, stop, step))
        vectors.append((item["data_file"], vector))
    return vectors


@pytest.mark.parametrize("name", FILES)
def test_java_files_decode(name: str) -> None:
    document, data = FILES[name], golden.read(name)
    assert len(data) == document["size"]
    for where, (data_file, vector) in zip(_ranges(document), _vectors(document), strict=True):
        decoded = decode_vector(data, where, subject=name)
        assert (where.data_file, decoded) == (data_file, vector)
        assert type(decoded) is BITMAPS[_kind(document)]


@pytest.mark.parametrize("name", sorted(set(FILES) - {"vectors-64-gaps.bin"}))
def test_encoding_gives_javas_bytes(name: str) -> None:
    document = FILES[name]
    data, ranges = encode_vectors(_vectors(document), _kind(document))
    assert data == golden.read(name)
    assert list(ranges) == _ranges(document)


def test_skipped_high_words_are_left_out_but_read() -> None:
    document = FILES["vectors-64-gaps.bin"]
    vectors = _vectors(document)
    data, (where,) = encode_vectors(vectors, BitmapKind.BITMAP64)
    assert len(data) < document["size"]
    assert decode_vector(data, where, subject="index") == vectors[0][1]


def test_a_file_of_nothing() -> None:
    assert encode_vectors([], BitmapKind.BITMAP32) == (b"\x01", ())


def test_vectors_without_positions() -> None:
    for kind, bitmap in BITMAPS.items():
        data, (where,) = encode_vectors([("a", bitmap())], kind)
        assert decode_vector(data, where, subject="index") == bitmap()


def test_arguments_are_left_alone() -> None:
    vector = BitMap([*range(1_000), 5_000])
    before = vector.serialize()
    encode_vectors([("a", vector)], BitmapKind.BITMAP32)
    assert vector.serialize() == before


POSITIONS = {BitmapKind.BITMAP32: st.integers(0, MAX_POSITION_32), BitmapKind.BITMAP64: st.integers(0, MAX_POSITION)}


@st.composite
def _files(draw: st.DrawFn) -> tuple[BitmapKind, list[tuple[str, set[int]]]]:
    kind = draw(st.sampled_from(BitmapKind))
    starts = draw(st.lists(POSITIONS[kind], max_size=4))
    sets = []
    for number, start in enumerate(starts):
        run = range(start, min(start + draw(st.integers(1, 200)), MAX_POSITION_32 + 1))
        sets.append((f"data-{number}.parquet", {start, *run[:: draw(st.integers(1, 3))]}))
    return kind, sets


@given(_files())
def test_sets_survive(file: tuple[BitmapKind, list[tuple[str, set[int]]]]) -> None:
    kind, sets = file
    data, ranges = encode_vectors([(name, BITMAPS[kind](positions)) for name, positions in sets], kind)
    for where, (name, positions) in zip(ranges, sets, strict=True):
        assert (where.data_file, where.cardinality) == (name, len(positions))
        assert set(decode_vector(data, where, subject="index")) == positions


@pytest.mark.parametrize(
    ("vector", "kind"),
    [
        (BitMap([2**31]), BitmapKind.BITMAP32),
        (BitMap64([2**31]), BitmapKind.BITMAP32),
        (BitMap64([MAX_POSITION + 1]), BitmapKind.BITMAP64),
    ],
)
def test_positions_the_kind_cannot_hold(vector: Vector, kind: BitmapKind) -> None:
    with pytest.raises(ValueError, match=r"vector of a.parquet: expected positions up to \d+, found \d+"):
        encode_vectors([("a.parquet", vector)], kind)


def _forged(body: bytes) -> tuple[bytes, VectorRange]:
    """A 32-bit record whose size and checksum hold, whatever it contains."""
    data = b"\x01" + struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    return data, VectorRange("a.parquet", 1, len(body), None)


MAGIC = bytes.fromhex("5e43f2d0")
PORTABLE = BitMap([1, 2, 5]).serialize()


def test_the_forger_forges() -> None:
    assert decode_vector(*_forged(MAGIC + PORTABLE), subject="index") == BitMap([1, 2, 5])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\x00" * 12, "expected magic 5e43f2d0 or d1d33964, found other bytes, 12 in all"),
        (MAGIC, "expected a portable BITMAP32"),
        (MAGIC + PORTABLE[:-1], "expected a portable BITMAP32"),
        (MAGIC + PORTABLE + b"\x00", r"expected \d+ bytes of bitmap"),
        (MAGIC + BitMap([2**31]).serialize(), "expected positions up to 2147483647, found 2147483648"),
        (b"", "expected a size inside the file"),
    ],
)
def test_whole_records_of_nonsense(body: bytes, message: str) -> None:
    with pytest.raises(CorruptMetadata, match=rf"^index/i-0: vector of a.parquet at 1: {message}"):
        decode_vector(*_forged(body), subject="index/i-0")


DATA, RANGES = encode_vectors([("a.parquet", BitMap([1, 2])), ("b.parquet", BitMap([9]))], BitmapKind.BITMAP32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": 0}, "expected an offset from 1 to"),
        ({"offset": -5}, "expected an offset from 1 to"),
        ({"offset": len(DATA)}, "expected an offset from 1 to"),
        ({"offset": 2**31}, "expected an offset from 1 to"),
        ({"offset": 2}, "expected a size inside the file"),
        ({"length": RANGES[0].length + 8}, r"expected size \d+ for length"),
        ({"length": -1}, r"expected size -1 for length"),
        ({"cardinality": 3}, "expected 3 deleted rows, found 2"),
    ],
)
def test_ranges_that_do_not_fit_the_file(change: dict[str, int], message: str) -> None:
    with pytest.raises(CorruptMetadata, match=message):
        decode_vector(DATA, dataclasses.replace(RANGES[0], **change), subject="index")


def test_a_vector_of_unknown_cardinality() -> None:
    where = dataclasses.replace(RANGES[1], cardinality=None)
    assert decode_vector(DATA, where, subject="index") == BitMap([9])


@pytest.mark.parametrize("data", [b"", b"\x02" + DATA[1:]])
def test_other_versions(data: bytes) -> None:
    with pytest.raises(CorruptMetadata, match="expected version byte 1, found"):
        decode_vector(data, RANGES[0], subject="index")


@pytest.mark.parametrize("kind", BitmapKind)
def test_every_flipped_bit_is_noticed(kind: BitmapKind) -> None:
    data, (where,) = encode_vectors([("a", BitMap([1, 5, 70_000]))], kind)
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptMetadata):
            decode_vector(bytes(damaged), where, subject="index")


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(-2, 70), st.integers(-2, 70))
def test_any_bytes_parse_or_raise_corrupt_metadata(data: bytes, bitmap: bytes, offset: int, length: int) -> None:
    wild = VectorRange("a", offset, length, None)
    for hostile, where in ((data, wild), (b"\x01" + data, wild), _forged(MAGIC + bitmap)):
        try:
            assert isinstance(decode_vector(hostile, where, subject="fuzz"), BitMap | BitMap64)
        except CorruptMetadata as error:
            assert error.subject.startswith("fuzz: vector of a")
