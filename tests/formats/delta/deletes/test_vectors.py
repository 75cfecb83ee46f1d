"""Deletion vectors: delta-spark's bytes both ways, and no vector out of bytes that are not whole."""

import dataclasses
import json
import struct
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.hand_made import z85

from nightkeep.encodings.roaring import MAX_POSITION
from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.deletes import vectors
from nightkeep.formats.delta.deletes import z85 as ours
from nightkeep.formats.delta.deletes.vectors import DeltaVectorWriter, decode, encode, read_vector, vector_file
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, Vector, VectorStorage
from nightkeep.formats.delta.metadata.snapshot import load
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
PORTABLE, NATIVE = struct.pack("<i", 1681511377), struct.pack("<i", 1681511376)
POSITIONS = st.integers(0, MAX_POSITION) | st.integers(0, 300_000)


def file_with(vector: Vector | None, rows: int | None = MAX_POSITION + 1) -> DeltaDataFile:
    return DeltaDataFile("part%200.parquet", "part 0.parquet", 1, rows, vector, None, {}, {})


@st.composite
def sets(draw: st.DrawFn) -> set[int]:
    """Scattered positions and runs of them, so that every kind of container is there."""
    held: set[int] = set()
    for start in draw(st.lists(POSITIONS, max_size=4)):
        length, step = draw(st.integers(1, 6_000)), draw(st.integers(1, 3))
        held |= {position for position in range(start, start + length, step) if position <= MAX_POSITION}
    return held


@given(st.binary(max_size=60))
def test_z85_is_that_of_the_rfc(data: bytes) -> None:
    padded = data + bytes(-len(data) % 4)

    assert ours.encode(data) == z85(padded)
    assert ours.decode(ours.encode(data)) == padded


def test_z85_of_the_rfc_and_of_the_protocol() -> None:
    assert ours.encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    vector = Vector(VectorStorage.RELATIVE, "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert vector_file(vector) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    bare = dataclasses.replace(vector, place=vector.place[2:])
    assert vector_file(bare) == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.mark.parametrize("text", ["abcd", "abcd ", "abc\u00e9e", "#####", "ab\ncd", "a~bcd"])
def test_other_text_is_no_z85(text: str) -> None:
    with pytest.raises(ValueError):
        ours.decode(text)


@given(sets())
def test_sets_survive_both_forms(held: set[int]) -> None:
    payload = encode(BitMap64(held))

    assert set(decode(payload, subject="v")) == held
    assert payload.startswith(PORTABLE) and BitMap64.deserialize(payload[4:]) == BitMap64(held)


@given(st.lists(st.sets(st.integers(0, 2**32 - 1), max_size=20), max_size=4))
def test_the_native_form_and_empty_buckets_are_read(buckets: list[set[int]]) -> None:
    """delta-spark lists a bucket for every key up to the last, in both forms."""
    parts = [BitMap(bucket).serialize() for bucket in buckets]
    native = struct.pack("<i", len(parts)) + b"".join(struct.pack("<i", len(part)) + part for part in parts)
    portable = struct.pack("<q", len(parts)) + b"".join(struct.pack("<i", k) + part for k, part in enumerate(parts))
    expected = {key << 32 | low for key, bucket in enumerate(buckets) for low in bucket}

    assert set(decode(NATIVE + native, subject="v")) == expected
    assert set(decode(PORTABLE + portable, subject="v")) == expected


def test_equal_sets_give_equal_bytes_and_arguments_are_left_alone() -> None:
    run, filled = BitMap64(range(5_000)), BitMap64()
    for position in reversed(range(5_000)):
        filled.add(position)
    before = filled.serialize()

    assert encode(run) == encode(filled) and len(encode(run)) < 100
    assert filled.serialize() == before


def test_a_position_that_java_cannot_hold_is_not_written() -> None:
    with pytest.raises(ValueError, match="positions up to"):
        encode(BitMap64([MAX_POSITION + 1]))


@given(st.binary(max_size=80))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    for payload in (data, PORTABLE + data, NATIVE + data, PORTABLE + struct.pack("<qi", 1, 0) + data):
        try:
            found = decode(payload, subject="v")
        except CorruptMetadata as error:
            assert error.subject == "v"
        else:
            assert decode(encode(found), subject="v") == found


@given(st.data())
def test_no_flipped_bit_of_a_payload_harms_more_than_it_states(data: st.DataObject) -> None:
    payload = bytearray(encode(BitMap64([*range(0, 9_000, 2), *range(70_000, 80_000), 2**33])))
    bit = data.draw(st.integers(0, len(payload) * 8 - 1))
    payload[bit // 8] ^= 1 << bit % 8
    try:
        found = decode(bytes(payload), subject="v")
    except CorruptMetadata:
        return
    # Without a checksum another set may be meant; it is a set.
    assert len(set(found)) == len(found)


def test_vectors_are_packed_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "PACKED_BYTES", 20_000)
    storage = LocalStorage(str(tmp_path))
    bitmaps = [BitMap64(range(0, 50_000 + n, 3)) for n in range(5)] + [BitMap64([7]), BitMap64()]
    writer = DeltaVectorWriter(storage, "nk-token-0")

    found = [writer.add(bitmap) for bitmap in bitmaps]
    names = writer.close()

    assert 1 < len(names) < len(bitmaps) and sorted({vector_file(v) for v in found if v}) == sorted(names)
    assert all((tmp_path / name).read_bytes()[0] == 1 for name in names)
    assert [v.rows for v in found] == [len(bitmap) for bitmap in bitmaps]
    assert [read_vector(storage, file_with(v)) for v in found] == bitmaps


def test_a_writer_of_nothing_writes_nothing(tmp_path: Path) -> None:
    assert DeltaVectorWriter(LocalStorage(str(tmp_path)), "p").close() == ()
    assert not list(tmp_path.iterdir())


def test_a_vector_without_prefix_is_in_the_tables_folder(tmp_path: Path) -> None:
    writer = DeltaVectorWriter(LocalStorage(str(tmp_path)), "")
    vector = writer.add(BitMap64([1]))

    assert writer.close() == tuple(path.name for path in tmp_path.glob("deletion_vector_*.bin"))
    assert read_vector(LocalStorage(str(tmp_path)), file_with(vector)) == BitMap64([1])


def test_a_file_without_a_vector_has_lost_no_row(tmp_path: Path) -> None:
    assert read_vector(LocalStorage(str(tmp_path)), file_with(None)) == BitMap64()


def inline(payload: bytes, rows: int) -> Vector:
    return Vector(VectorStorage.INLINE, ours.encode(payload), None, len(payload), rows)


def test_inline_vectors(tmp_path: Path) -> None:
    storage, held = LocalStorage(str(tmp_path)), BitMap64([3, 4, 7, 11, 18, 29])
    vector = inline(encode(held), 6)

    assert read_vector(storage, file_with(vector, 30)) == held
    for broken in (
        dataclasses.replace(vector, rows=5),
        dataclasses.replace(vector, place=vector.place[:-1]),
        dataclasses.replace(vector, place=vector.place[:-5]),
        dataclasses.replace(vector, place="\u00e9" + vector.place[1:]),
        dataclasses.replace(vector, bytes=vector.bytes - 4),
        dataclasses.replace(vector, bytes=vector.bytes + 4),
        inline(b"\0" + encode(held), 6),
        inline(b"", 0),
    ):
        with pytest.raises(CorruptMetadata, match=r"part%200\.parquet: inline vector"):
            read_vector(storage, file_with(broken, 30))


def test_positions_beyond_the_file_are_refused(tmp_path: Path) -> None:
    vector = inline(encode(BitMap64([1, 30])), 2)
    with pytest.raises(CorruptMetadata, match=r"positions below the 30 rows of part%200\.parquet, found 30"):
        read_vector(LocalStorage(str(tmp_path)), file_with(vector, 30))


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[tuple[LocalStorage, Path, Vector, BitMap64]]:
    """A file of two vectors, of which the second is looked at."""
    storage, held = LocalStorage(str(tmp_path)), BitMap64([*range(40, 60), 99])
    writer = DeltaVectorWriter(storage, "p")
    writer.add(BitMap64([1, 2]))
    vector = writer.add(held)
    (name,) = writer.close()
    yield storage, tmp_path / name, vector, held


def test_absolute_places_are_uris(tmp_path: Path, stored: tuple[LocalStorage, Path, Vector, BitMap64]) -> None:
    storage, path, vector, held = stored
    other = tmp_path / "else where" / "50%.bin"
    other.parent.mkdir()
    path.rename(other)
    for place in (other.as_uri(), other.as_uri().removeprefix("file://")):
        moved = Vector(VectorStorage.ABSOLUTE, place, vector.offset, vector.bytes, vector.rows)
        assert vector_file(moved) is None
        assert read_vector(storage, file_with(moved, 100)) == held


@pytest.mark.parametrize("place", ["s3://bucket/v.bin", "abfss://c@a.dfs.core.windows.net/v.bin", "v.bin"])
def test_places_elsewhere_are_refused_by_name(tmp_path: Path, place: str) -> None:
    vector = Vector(VectorStorage.ABSOLUTE, place, 1, 10, 1)
    with pytest.raises(RefusedTable, match=place):
        read_vector(LocalStorage(str(tmp_path)), file_with(vector))


def test_a_file_that_is_gone_is_missing(stored: tuple[LocalStorage, Path, Vector, BitMap64]) -> None:
    storage, path, vector, _ = stored
    path.unlink()
    with pytest.raises(MissingFile, match=path.name):
        read_vector(storage, file_with(vector))


def test_no_truncated_file_gives_a_vector(stored: tuple[LocalStorage, Path, Vector, BitMap64]) -> None:
    storage, path, vector, held = stored
    data = path.read_bytes()
    assert read_vector(storage, file_with(vector, 100)) == held
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CorruptMetadata, match=f"{path.name}: vector at {vector.offset}"):
            read_vector(storage, file_with(vector, 100))


def test_no_flipped_bit_gives_another_vector(stored: tuple[LocalStorage, Path, Vector, BitMap64]) -> None:
    storage, path, vector, held = stored
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        if 1 <= bit // 8 < (vector.offset or 0):
            assert read_vector(storage, file_with(vector, 100)) == held
        else:
            with pytest.raises(CorruptMetadata):
                read_vector(storage, file_with(vector, 100))


@pytest.mark.parametrize("change", [{"offset": 0}, {"offset": 2}, {"bytes": 1}, {"rows": 20}, {"bytes": 10**9}])
def test_no_descriptor_that_states_otherwise_gives_a_vector(
    stored: tuple[LocalStorage, Path, Vector, BitMap64], change: dict[str, int]
) -> None:
    storage, _, vector, _ = stored
    with pytest.raises(CorruptMetadata):
        read_vector(storage, file_with(dataclasses.replace(vector, **change), 100))


def test_a_place_that_ends_in_no_uuid_is_corrupt(tmp_path: Path) -> None:
    for place in ("short", "x" * 19 + "~", "#" * 20):
        with pytest.raises(CorruptMetadata, match="a UUID in Z85"):
            read_vector(LocalStorage(str(tmp_path)), file_with(Vector(VectorStorage.RELATIVE, place, 1, 10, 1)))


def test_delta_sparks_bytes_are_written_as_they_are() -> None:
    """Its payloads come out of our encoder byte by byte, and its checksums out of ours."""
    seen = 0
    for name in ("vectors", "vectors_of_partitions", "merge", "random_prefixes"):
        storage = LocalStorage(str(GOLDEN / name / "table"))
        for unit in load(Address("delta", storage.root, name), storage).units:
            for file in unit.files:
                if file.vector is None or file.vector.kind is VectorStorage.INLINE:
                    continue
                payload = encode(read_vector(storage, file))
                record = struct.pack(">i", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
                path = vector_file(file.vector)
                assert path is not None and file.vector.offset is not None
                assert storage.read(path)[file.vector.offset :].startswith(record)
                seen += 1
    assert seen


def test_names_are_those_of_their_uuids(tmp_path: Path) -> None:
    unique = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    place = "nk-x" + ours.encode(unique.bytes)
    assert vector_file(Vector(VectorStorage.RELATIVE, place, 1, 1, 1)) == f"nk-x/deletion_vector_{unique}.bin"


@pytest.mark.extended
def test_the_engines_hide_what_our_vectors_hide(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    """Three vectors in one file below a prefix: an array, a run and a bitset; and one inline."""
    rows = 200_000
    writing = Writing(files=1, properties={"delta.enableDeletionVectors": "true"})
    for start in range(4):
        delta_spark.write(tmp_path, Generated(rows, (f"id * 4 + {start} AS n",)), writing)
    storage = LocalStorage(str(tmp_path))
    (unit,) = load(Address("delta", str(tmp_path), "t"), storage).units
    deleted = [BitMap64([0, 7, rows - 1]), BitMap64(range(1_000, 150_000)), BitMap64(range(0, rows, 3)), BitMap64([5])]
    writer = DeltaVectorWriter(storage, "nk-token-0")
    added = [writer.add(bitmap) for bitmap in deleted[:3]] + [inline(encode(deleted[3]), 1)]
    (name,) = writer.close()
    actions = [{"commitInfo": {"timestamp": 1_795_000_000_000, "operation": "DELETE", "operationParameters": {}}}]
    for file, vector in zip(unit.files, added, strict=True):
        stats = json.dumps({**json.loads(file.stats or ""), "tightBounds": False})
        place = {"storageType": vector.kind, "pathOrInlineDv": vector.place, "sizeInBytes": vector.bytes}
        place |= {"cardinality": vector.rows} | ({} if vector.offset is None else {"offset": vector.offset})
        gone = {"path": file.path, "deletionTimestamp": 1_795_000_000_000, "dataChange": True}
        actions += [
            {"remove": gone},
            {"add": {**file.raw, "dataChange": True, "stats": stats, "deletionVector": place}},
        ]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (tmp_path / "_delta_log" / f"{4:020d}.json").write_text(text)

    starts = [DeltaFileReader(storage, unit, file).read().column("n").to_numpy() for file in unit.files]
    kept = [np.delete(values, list(bitmap)) for values, bitmap in zip(starts, deleted, strict=True)]
    everything = np.concatenate(kept)
    expected = (len(everything), int(everything.sum()))
    (unit,) = load(Address("delta", str(tmp_path), "t"), storage).units
    assert [read_vector(storage, file) for file in unit.files] == deleted and name.startswith("nk-token-0/")
    delta_spark.forget()
    assert delta_spark.read(tmp_path, columns=("count(*) AS c", "sum(n) AS s")).rows == (expected,)
    assert lakes.delta_rs_read(tmp_path, columns=("count(n) AS c", "sum(n) AS s")).rows == (expected,)
    ((count, total),) = lakes.duckdb_read(tmp_path, columns=("count(*) AS c", "sum(n)::BIGINT AS s")).rows
    assert (count, total) == expected
