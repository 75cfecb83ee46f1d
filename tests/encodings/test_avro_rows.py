"""Avro files of rows: times and decimals as numbers, and what damaged bytes may not become."""

from datetime import date, datetime, time
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import AvroHeader, array_of, container_bytes
from nightkeep.encodings.avro_rows import AvroRows
from nightkeep.errors import CorruptMetadata, NightkeepError

SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "zoned", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}},
    ],
}
ROWS = [
    {
        "n": n,
        "text": None if n % 3 else f"text {n}",
        "day": date(1 + n, 1, 1),
        "at": datetime(9999 - n, 12, 31),
        "zoned": datetime(2026, 1, 1),
        "time": time(1, 2, 3, 4000),
        "d": Decimal(n * 10**20) / 100,
    }
    for n in range(500)
]


def stored(codec: str) -> bytes:
    return container_bytes(ROWS, array_of(SCHEMA), CODECS[codec], AvroHeader(SCHEMA, {}))


@pytest.mark.parametrize("codec", CODECS)
def test_rows_are_those_that_were_written(codec: str) -> None:
    rows = AvroRows(stored(codec), subject="f.avro")

    found = rows.read(rows.names)
    assert rows.rows == 500 and found.to_pylist() == ROWS
    assert found.schema.types == [
        pa.int32(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.timestamp("ms"),
        pa.time32("ms"),
        pa.decimal128(30, 2),
    ]
    assert rows.read(["text", "n"]).column_names == ["text", "n"]
    assert rows.read([]).num_rows == 500


def test_other_bytes_are_no_avro_file() -> None:
    with pytest.raises(CorruptMetadata, match=r"f\.avro: expected an Avro object container file"):
        AvroRows(b"PAR1" * 9, subject="f.avro")


@pytest.mark.parametrize("codec", ["null", "zstandard"])
def test_damaged_bytes_never_end_in_another_error(codec: str) -> None:
    whole, dice = stored(codec), Random(7)
    for _ in range(200):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        try:
            rows = AvroRows(bytes(data), subject="f.avro")
            rows.read(rows.names)
        except NightkeepError:
            continue
