"""Manifests as columns: what a reader of records reads, or nothing."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.iceberg.golden_tables import GOLDEN

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.avro import AvroLayout, Names, read_frame, read_records, write_records

NAMES = Names({0: "status", 2: "data_file", 100: "path", 104: "bytes"}, {})
MANIFESTS = sorted(str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*-m*.avro"))

Entry = tuple[object, object, object]


def by_records(data: bytes) -> list[Entry]:
    found = (record for record in read_records(data, NAMES, subject="m"))
    return [(each["status"], each["data_file"]["path"], each["data_file"]["bytes"]) for each in found]


def by_columns(data: bytes) -> list[Entry] | None:
    frame = read_frame(data, NAMES, subject="m")
    if frame is None:
        return None
    return frame.select("status", pl.col("data_file").struct.field("path", "bytes")).rows()


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_both_read_the_same_of_what_engines_wrote(manifest: str) -> None:
    data = (GOLDEN / manifest).read_bytes()
    assert by_columns(data) == by_records(data) != []


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_and_one_record_a_block(codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "s", "type": "int", "field-id": 0}]}
    names = Names({0: "status"}, {})
    one = write_records([{"status": 1}], AvroLayout(schema, names, CODECS[codec], {}))
    # The header ends where the only block begins: its marker is the last thing of both.
    block = one[one.index(one[-16:]) + 16 :]
    frame = read_frame(one + block * 299, names, subject="m")
    assert frame is not None and frame["status"].to_list() == [1] * 300


@cache
def history() -> bytes:
    return max((Path(GOLDEN, name).read_bytes() for name in MANIFESTS if "history" in name), key=len)


@given(st.data())
def test_of_damaged_bytes_both_read_the_same_or_one_reads_nothing(data: st.DataObject) -> None:
    content = bytearray(history())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        expected = by_records(bytes(content))
    except (CorruptMetadata, KeyError, TypeError):
        return
    try:
        assert by_columns(bytes(content)) in (expected, None)
    except (CorruptMetadata, pl.exceptions.PolarsError):
        return
