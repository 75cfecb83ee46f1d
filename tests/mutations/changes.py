"""A file's bytes and a source of randomness -> other bytes: damaged anywhere, or wrong where only its format tells."""

import copy
import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.parquet_footer import BINARY, I32, I64, LIST, STRUCT, Fields, footer_bytes, read_footer

Change = Callable[[bytes, Random], bytes]

LENGTHS = [
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\xff",
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\xff" * 8,
    b"\xff" * 7 + b"\x7f",
    b"\x80" * 5 + b"\x20",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
    bytes(8),
]
"""Numbers as they stand in files: fixed ones of both ends, and of variable length."""
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    7,
    1 << 31,
    (1 << 31) - 1,
    1 << 63,
    (1 << 63) - 1,
    -(1 << 63),
    1 << 70,
    10**400,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "a",
    "0",
    "-1",
    "null",
    "\0",
    "\ud800",
    "\u00b2",
    "..",
    "/",
    "../../x",
    "/etc/passwd",
    "file:///x",
    "s3://b/k",
    "http://[",
    "%00",
    "%",
    "%ff",
    "a" * 300,
    "a/" * 3000,
    "9" * 5000,
    "struct<",
    "decimal(9,99)",
    [],
    [[]],
    [None],
    {},
    {"": None},
    {"type": "struct", "fields": []},
    ["a", 1],
    "{",
    "[" * 2000,
    "{}",
]


TEXTS = [each for each in VALUES if isinstance(each, str) and "\ud800" not in each]


def damaged(data: bytes, random: Random) -> bytes:
    """Bytes changed without a thought of what they mean."""
    if not data:
        return random.randbytes(random.randrange(64))
    at = random.randrange(len(data))
    length = min(len(data) - at, 1 << random.randrange(10))
    return random.choice(_DAMAGES)(data, at, length, random)


def _flipped(data: bytes, at: int, length: int, random: Random) -> bytes:
    content = bytearray(data)
    for _ in range(1 + random.randrange(4)):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return bytes(content)


def _other_number(data: bytes, at: int, length: int, random: Random) -> bytes:
    number = random.choice(LENGTHS)
    return data[:at] + number + data[at + len(number) :]


def _other_end(data: bytes, at: int, length: int, random: Random) -> bytes:
    return _other_number(data, max(0, len(data) - random.randrange(40)), length, random)


_DAMAGES: list[Callable[[bytes, int, int, Random], bytes]] = [
    _flipped,
    _flipped,
    lambda data, at, length, random: data[:at],
    lambda data, at, length, random: data[:at] + data[at + length :],
    lambda data, at, length, random: data[:at] + random.randbytes(length) + data[at:],
    lambda data, at, length, random: data[: at + length] + data[at:],
    lambda data, at, length, random: data[:at] + bytes(length) + data[at + length :],
    _other_number,
    _other_end,
]


def other_value(value: Any, random: Random) -> Any:
    """A JSON value with something in it changed; documents in texts, such as a schema, are entered."""
    found = copy.deepcopy(value)
    holders = list(_holders(found))
    if not holders or random.random() < 0.02:
        return random.choice(VALUES)
    holder = random.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    key = random.choice(keys)
    _change(holder, key, random, holders)
    return found


def _change(holder: Any, key: Any, random: Random, holders: Sequence[Any]) -> None:
    match random.randrange(8):
        case 0:
            del holder[key]
        case 1:
            holder[key] = copy.deepcopy(random.choice(holders))
        case 2:
            holder[key] = _nested(random)
        case 3 if isinstance(holder, dict):
            holder[random.choice([*TEXTS, key + "x"])] = holder.pop(key)
        case 4 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case 5 if isinstance(holder[key], str) and holder[key][:1] in ("{", "["):
            holder[key] = _other_text(holder[key], random)
        case _:
            holder[key] = _near(holder[key], random)


def _near(value: Any, random: Random) -> Any:
    if type(value) is int and random.random() < 0.5:
        return value + random.choice([-1, 1, 10, 1 << 31, 1 << 62, -value, -2 * value])
    if isinstance(value, str) and value and random.random() < 0.5:
        return damaged(value.encode("utf-8", "replace"), random).decode("utf-8", "replace")
    return random.choice(VALUES)


def _other_text(text: str, random: Random) -> str:
    try:
        return dumps(other_value(json.loads(text), random)).decode("utf-8", "replace")
    except (ValueError, RecursionError):
        return text[: len(text) // 2]


def _nested(random: Random) -> Any:
    value: Any = random.choice(VALUES)
    for _ in range(random.choice([3, 40, 400])):
        value = [value] if random.random() < 0.5 else {"type": value}
    return value


def _holders(value: Any) -> Any:
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict | list) and each:
            yield each
            pending += list(each.values()) if isinstance(each, dict) else each


def dumps(value: Any) -> bytes:
    try:
        return json.dumps(value).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return b"{"


def changed_json(data: bytes, random: Random) -> bytes:
    packed = data[:2] == b"\x1f\x8b"
    text = dumps(other_value(json.loads(gzip.decompress(data) if packed else data), random))
    if random.random() < 0.02:
        text = b"[" * 200_000
    return gzip.compress(text, 1) if packed else text


def changed_lines(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    match random.randrange(6):
        case 0:
            lines.insert(at, random.choice(lines))
        case 1:
            del lines[at]
        case 2:
            lines[at] = lines[at] + lines[random.randrange(len(lines))]
        case _:
            lines[at] = dumps(other_value(json.loads(lines[at] or b"{}"), random))
    return b"\n".join(lines)


def changed_avro(data: bytes, random: Random) -> bytes:
    """The header's schema, a record's values, or a block's bytes under a codec and a marker that hold."""
    header, sync, blocks = _avro(data)
    codec = header.get("avro.codec", b"null").decode()
    match random.randrange(5):
        case 0:
            schema = dumps(other_value(json.loads(header["avro.schema"]), random))
            return _container(header | {"avro.schema": schema}, sync, blocks)
        case 1 | 2:
            records = list(fastavro.reader(io.BytesIO(data)))
            sink = io.BytesIO()
            schema = json.loads(header["avro.schema"])
            rest = {key: value.decode() for key, value in header.items() if not key.startswith("avro.")}
            fastavro.writer(sink, schema, _other_records(records, random), codec=codec, metadata=rest)
            return sink.getvalue()
        case 3 if blocks:
            at = random.randrange(len(blocks))
            count, content = blocks[at]
            content = damaged(CODECS[codec].unpack(content), random)
            blocks[at] = (count, CODECS[codec].pack(content))
            return _container(header, sync, blocks)
        case 4 if blocks:
            at = random.randrange(len(blocks))
            count, content = blocks[at]
            blocks[at] = (random.choice([0, count + 1, count - 1, 1 << 40, (1 << 63) - 1, -1]), content)
            return _container(header, sync, blocks * random.choice([1, 2]))
    return _container(header | {"avro.codec": random.choice([b"null", b"deflate", b"xz", b"\xff"])}, sync, blocks)


def _other_records(records: list[Any], random: Random) -> list[Any]:
    if not records or random.random() < 0.1:
        return records * 2
    for _ in range(1 + random.randrange(3)):
        holders = list(_holders(random.choice(records)))
        holder = random.choice(holders)
        key = random.choice(list(holder) if isinstance(holder, dict) else list(range(len(holder))))
        holder[key] = _alike(holder[key], random)
    return records


def _alike(value: Any, random: Random) -> Any:
    """Of the same type, so that the schema still holds it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return random.choice([0, 1, -1, value + 1, value - 1, (1 << 31) - 1, -(1 << 31), 255, 1 << 20])
    if isinstance(value, str):
        return random.choice([*TEXTS, value + "x", value[:-1]])
    if isinstance(value, bytes):
        return damaged(value, random)
    if isinstance(value, list):
        return random.choice([[], value[1:], value * 2])
    return value


def _avro(data: bytes) -> tuple[dict[str, bytes], bytes, list[tuple[int, bytes]]]:
    body = io.BytesIO(data)
    assert body.read(4) == b"Obj\x01"
    header: Any = fastavro.schemaless_reader(body, {"type": "map", "values": "bytes"}, None)
    sync, blocks = body.read(16), []
    while body.tell() < len(data):
        count: Any = fastavro.schemaless_reader(body, "long", None)
        content: Any = fastavro.schemaless_reader(body, "bytes", None)
        blocks.append((count, content))
        body.read(16)
    return header, sync, blocks


def _written(schema: Any, value: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, schema, value)
    return sink.getvalue()


def _container(header: Any, sync: bytes, blocks: Sequence[tuple[int, bytes]]) -> bytes:
    head = b"Obj\x01" + _written({"type": "map", "values": "bytes"}, header) + sync
    return head + b"".join(_written("long", count) + _written("bytes", content) + sync for count, content in blocks)


def changed_parquet(data: bytes, random: Random) -> bytes:
    """A number or a text of the footer, or values of rows under a footer that fits them."""
    if random.random() < 0.5:
        footer = read_footer(pa.BufferReader(data))
        for _ in range(1 + random.randrange(2)):
            _change_field(footer, random)
        (length,) = struct.unpack("<I", data[-8:-4])
        return data[: -8 - length] + footer_bytes(footer)
    table = pq.read_table(pa.BufferReader(data))
    rows = table.to_pylist(maps_as_pydicts="lossy")
    at = random.randrange(len(rows)) if rows else 0
    rows[at : at + 1] = [other_value(rows[at], random)] if rows else []
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), sink)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError):
        pq.write_table(_retyped(table, random), sink)
    return sink.getvalue().to_pybytes()


def _retyped(table: pa.Table, random: Random) -> pa.Table:
    """One column of another type, absent, or twice."""
    at = random.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    match random.randrange(5):
        case 0:
            return table.remove_column(at)
        case 1:
            return table.append_column(name, column)
        case 2:
            return table.set_column(at, name, pa.nulls(len(table), pa.int64()))
        case 3:
            return table.set_column(at, name, pa.array(["a"] * len(table)))
    return table.set_column(at, name, pa.array([{"path": 5}] * len(table)))


def _change_field(footer: Fields, random: Random) -> None:
    fields = list(_fields(footer))
    holder, number = random.choice(fields)
    kind, value = holder[number]
    if kind == BINARY:
        holder[number] = (kind, damaged(value, random))
    elif kind in (I32, I64):
        most = 31 if kind == I32 else 63
        numbers = [0, 1, -1, value + 1, value - 1, (1 << most) - 1, -(1 << most), 1 << 20, 3, 7]
        holder[number] = (kind, random.choice(numbers))
    elif kind == LIST:
        element, items = value
        holder[number] = (kind, (element, items * 2 if random.random() < 0.5 else items[1:]))
    else:
        del holder[number]


def _fields(footer: Fields) -> Any:
    for number, (kind, value) in list(footer.items()):
        yield footer, number
        if kind == STRUCT:
            yield from _fields(value)
        elif kind == LIST and value[0] == STRUCT:
            for each in value[1]:
                yield from _fields(each)


def changed_puffin(data: bytes, random: Random) -> bytes:
    """The footer's JSON, or the bitmap of a vector under a checksum that holds."""
    (length,) = struct.unpack("<i", data[-12:-8])
    start = len(data) - 12 - length
    document = json.loads(data[start:-12])
    body = data[: start - 4]
    if random.random() < 0.5 and document["blobs"]:
        blob = random.choice(document["blobs"])
        at, size = blob["offset"], blob["length"]
        payload = _other_bitmap(data[at + 4 : at + size - 4], random)
        whole = struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
        if len(whole) == size:
            return data[:at] + whole + data[at + size :]
        body, blob["offset"], blob["length"] = body + whole, len(body), len(whole)
        text = dumps(document)
    else:
        text = dumps(other_value(document, random))
    lengths = [len(text)] * 20 + [-1, 0, 1 << 30, len(text) + 1]
    return body + b"PFA1" + text + struct.pack("<i", random.choice(lengths)) + data[-8:-4] + b"PFA1"


def changed_vectors(data: bytes, random: Random) -> bytes:
    """Of a file of vectors with version byte, sizes and checksums, as Delta and Paimon have them."""
    places, at = [], 1
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">i", data, at)
        places.append((at, size))
        at += size + 8
    if not places:
        return damaged(data, random)
    at, size = random.choice(places)
    payload = _other_bitmap(data[at + 4 : at + 4 + size], random)[:size].ljust(size, b"\0")
    return data[: at + 4] + payload + struct.pack(">I", zlib.crc32(payload)) + data[at + 8 + size :]


def _other_bitmap(payload: bytes, random: Random) -> bytes:
    return payload[:4] + damaged(payload[4:], random) if random.random() < 0.9 else damaged(payload, random)


_CANNOT = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    EOFError,
    RecursionError,
    OSError,
    struct.error,
    zlib.error,
)
"""Of a change that makes what no writer of the format can hold."""


def changed(data: bytes, name: str, random: Random) -> bytes:
    """Of a file of this name: as its format has it three times of four, where its bytes are of that format."""
    change = _of(data, name)
    if change is None or random.random() < 0.25:
        return damaged(data, random)
    try:
        found = change(data, random)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        EOFError,
        struct.error,
        zlib.error,
        OSError,
    ):
        return damaged(data, random)
    return damaged(found, random) if random.random() < 0.05 else found


def _of(data: bytes, name: str) -> Change | None:
    if data[:4] == b"Obj\x01":
        return changed_avro
    if data[:4] == b"PAR1":
        return changed_parquet
    if data[:4] == b"PFA1":
        return changed_puffin
    if data[:1] == b"\x01":
        return changed_vectors
    if name.endswith(".json") and "_delta_log" in name:
        return changed_lines
    return changed_json if data[:1] == b"{" or data[:2] == b"\x1f\x8b" else None
