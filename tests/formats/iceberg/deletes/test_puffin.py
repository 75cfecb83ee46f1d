"""Puffin files: Java's are read, ours are Java's, and nothing is taken for one that is none."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.shown import STORAGE

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.iceberg.deletes.puffin import Footer, NewBlob, open_puffin, read_footer, write_puffin
from nightkeep.formats.iceberg.metadata.locations import storage_name

FLAGS = bytes(4)


def puffin(payload: bytes, flags: bytes = FLAGS, blobs: bytes = b"") -> bytes:
    return b"PFA1" + blobs + b"PFA1" + payload + struct.pack("<i", len(payload)) + flags + b"PFA1"


def footer_at(tmp_path: Path, data: bytes) -> Footer:
    (tmp_path / "p").write_bytes(data)
    return read_footer(STORAGE, f"{tmp_path}/p"[1:])


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_blobs_are_written_and_read_back(tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("p") / "p"
    blobs = [NewBlob("x", (1, 2), content, {"n": str(n)}) for n, content in enumerate(contents)]
    name = str(path)[1:]

    size, placed = write_puffin(STORAGE, name, blobs, {"created-by": "test"})

    assert size == path.stat().st_size
    footer = read_footer(STORAGE, name)
    assert footer.blobs == placed and footer.properties == {"created-by": "test"}
    assert [path.read_bytes()[b.offset : b.offset + b.length] for b in placed] == contents
    with open_puffin(STORAGE, name, file_bytes=size) as found:
        for blob, content in zip(placed, contents, strict=True):
            if content:
                assert found.blob(blob.offset) == (blob, content)
        with pytest.raises(CorruptMetadata, match=r"/p: expected a blob at offset 1, found none in the footer"):
            found.blob(1)


def test_statistics_that_java_wrote(made: Callable[[str], Table], iceberg_java: IcebergJava) -> None:
    (told,) = iceberg_java.metadata(made("statistics_v2"))["statistics"]
    footer = read_footer(STORAGE, storage_name(told["statistics-path"]))
    assert [blob.type for blob in footer.blobs] == [blob["type"] for blob in told["blob-metadata"]]
    assert [list(blob.fields) for blob in footer.blobs] == [blob["fields"] for blob in told["blob-metadata"]]
    assert [blob.snapshot_id for blob in footer.blobs] == [blob["snapshot-id"] for blob in told["blob-metadata"]]
    assert footer.blobs


def test_a_compressed_footer_is_read(tmp_path: Path) -> None:
    payload = json.dumps({"blobs": [], "properties": {"a": "b"}}).encode()
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "lz4") as stream:
        stream.write(payload)
    found = footer_at(tmp_path, puffin(packed.getvalue().to_pybytes(), b"\x01\0\0\0"))
    assert found.properties == {"a": "b"} and found.blobs == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PFA1",
        b"PFA1PFA1",
        puffin(b""),
        puffin(b"{}"),
        puffin(b"[]"),
        puffin(b'{"blobs": 3}'),
        puffin(b'{"blobs": [3]}'),
        puffin(b'{"blobs": [{}]}'),
        puffin(b'{"blobs": [], "properties": 3}'),
        puffin(b'{"blobs": []}', b"\x02\0\0\0"),
        puffin(b'{"blobs": []}', b"\x01\0\0\0"),
        puffin(b'{"blobs": []}')[4:],
        puffin(b'{"blobs": []}')[:-1],
        puffin(b'{"blobs": []}').replace(b"PFA1{", b"PFA2{"),
        b"PFA1" + struct.pack("<i", -5) + FLAGS + b"PFA1",
        b"PFA1PFA1" + struct.pack("<i", 2**31 - 1) + FLAGS + b"PFA1",
        puffin(b"[" * 100_000),
        puffin(b'{"blobs": []}' + b"\xff"),
    ],
)
def test_what_is_no_puffin_file(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CorruptMetadata, match="/p:"):
        footer_at(tmp_path, data)


@given(st.binary(max_size=60))
def test_any_payload_is_a_footer_or_refused(tmp_path_factory: pytest.TempPathFactory, payload: bytes) -> None:
    for flags in (FLAGS, b"\x01\0\0\0"):
        with pytest.raises(CorruptMetadata):
            footer_at(tmp_path_factory.getbasetemp(), puffin(payload, flags))


def test_footers_that_are_none_leave_no_memory_behind(tmp_path: Path) -> None:
    """A process that has 256 MiB mapped for each of them can start no other process soon."""
    before = mapped_bytes()
    for number in range(40):
        with pytest.raises(CorruptMetadata):
            footer_at(tmp_path, puffin(b"no lz4 %d" % number, b"\x01\0\0\0"))
    assert mapped_bytes() - before < 1 << 30


def mapped_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmSize:")) << 10


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_footer(STORAGE, f"{tmp_path}/p"[1:])
