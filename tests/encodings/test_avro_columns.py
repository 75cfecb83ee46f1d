"""Avro files of nested columns: what Polars decodes is what fastavro decodes; and what damaged bytes may not become."""

import io
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from nightkeep.encodings import avro_columns
from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_columns import AvroColumns
from nightkeep.encodings.avro_container import AvroHeader, array_of, container_bytes
from nightkeep.errors import CorruptMetadata, NightkeepError, RefusedTable
from nightkeep.model.arrow_types import field_id

_UUID = {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}
_PLAIN: dict[str, Any] = {
    "flag": "boolean",
    "n": "int",
    "big": "long",
    "single": "float",
    "real": "double",
    "text": "string",
    "raw": "bytes",
    "three": {"type": "fixed", "name": "three", "size": 3},
    "price": {"type": "fixed", "name": "d9", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
    "precise": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
    "day": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "at": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "local": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
}


_VALUES: dict[str, Callable[[Random], Any]] = {
    "flag": lambda random: random.random() < 0.5,
    "n": lambda random: random.randrange(-(2**31), 2**31),
    "big": lambda random: random.randrange(-(2**63), 2**63),
    "single": lambda random: random.choice([0.5, -0.0, float("inf")]),
    "real": lambda random: random.random(),
    "text": lambda random: random.choice(["", "a", "na\u00efve \u4e2d\U0001f600", "x" * 40]),
    "raw": lambda random: random.randbytes(random.randrange(9)),
    "three": lambda random: random.randbytes(3),
    "price": lambda random: Decimal(random.randrange(1 - 10**9, 10**9)).scaleb(-2),
    "precise": lambda random: Decimal(random.randrange(-(10**28), 10 ** random.randrange(1, 29))).scaleb(-10),
    "day": lambda random: date.fromordinal(random.randrange(1, 3_000_000)),
    "time": lambda random: time(random.randrange(24), 59, 1, random.randrange(10**6)),
    "at": lambda random: datetime(random.randrange(1, 9999), 3, 4, 5, 6, 7, random.randrange(10**6), tzinfo=UTC),
    "local": lambda random: datetime(random.randrange(1, 9999), 3, 4, 5, 6, 7, random.randrange(10**6), tzinfo=UTC),
}


class Made:
    """A random schema, with the rows of a file of it, and those rows as Arrow shows them."""

    def __init__(self, seed: int) -> None:
        self.random, self._names = Random(seed), 0
        columns = self.random.sample(sorted(_PLAIN), 6)
        kinds = [self._kind(depth=0, name=name) for name in columns]
        fields = [{"name": f"c{at}", "type": kind, "field-id": at + 1} for at, (kind, _) in enumerate(kinds)]
        self.schema = {"type": "record", "name": "table", "fields": fields}
        count = self.random.randrange(1, 400)
        pairs = [[make() for _, make in kinds] for _ in range(count)]
        self.rows = [{f"c{at}": stored for at, (stored, _) in enumerate(row)} for row in pairs]
        self.shown = [{f"c{at}": shown for at, (_, shown) in enumerate(row)} for row in pairs]

    def file(self, codec: str = "deflate") -> bytes:
        out = io.BytesIO()
        fastavro.writer(out, fastavro.parse_schema(self.schema), self.rows, codec=codec, sync_interval=900)
        return out.getvalue()

    def _kind(self, depth: int, name: str) -> Any:
        kind, make = self._whole(depth, name)
        if self.random.random() < 0.6:
            union = ["null", kind] if self.random.random() < 0.8 else [kind, "null"]
            return union, lambda: (None, None) if self.random.random() < 0.3 else make()
        return kind, make

    def _whole(self, depth: int, name: str) -> Any:
        if depth == 2:
            return self._plain(name)
        makers = [lambda: self._plain(name)]
        makers += [lambda make=make: make(depth + 1) for make in (self._record, self._array, self._map, self._pairs)]
        return self.random.choice(makers)()

    def _part(self, depth: int) -> Any:
        return self._kind(depth, self.random.choice(sorted(_PLAIN)))

    def _few(self, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(self.random.randrange(4))]

    def _plain(self, name: str) -> Any:
        kind = _PLAIN[name]
        if isinstance(kind, dict) and "name" in kind:
            kind = {**kind, "name": self._name()}

        def make() -> Any:
            value = _VALUES[name](self.random)
            return value, value.replace(tzinfo=None) if name == "local" else value

        return kind, make

    def _record(self, depth: int) -> Any:
        (first, one), (second, other) = self._part(depth), self._part(depth)
        fields = [{"name": "x", "type": first, "field-id": 70}, {"name": "y", "type": second, "field-id": 71}]

        def make() -> Any:
            x, y = one(), other()
            return {"x": x[0], "y": y[0]}, {"x": x[1], "y": y[1]}

        return {"type": "record", "name": self._name(), "fields": fields}, make

    def _array(self, depth: int) -> Any:
        items, item = self._part(depth)

        def make() -> Any:
            pairs = self._few(item)
            return [stored for stored, _ in pairs], [shown for _, shown in pairs]

        return {"type": "array", "items": items, "element-id": 72}, make

    def _map(self, depth: int) -> Any:
        values, value = self._part(depth)

        def make() -> Any:
            pairs = {f"k{at}": pair for at, pair in enumerate(self._few(value))}
            return {key: pair[0] for key, pair in pairs.items()}, [(key, pair[1]) for key, pair in pairs.items()]

        return {"type": "map", "values": values, "key-id": 73, "value-id": 74}, make

    def _pairs(self, depth: int) -> Any:
        values, value = self._part(depth)
        fields = [{"name": "key", "type": "int", "field-id": 75}, {"name": "value", "type": values, "field-id": 76}]

        def make() -> Any:
            pairs = [*enumerate(self._few(value))]
            return [{"key": key, "value": pair[0]} for key, pair in pairs], [(key, pair[1]) for key, pair in pairs]

        record = {"type": "record", "name": self._name(), "fields": fields}
        return {"type": "array", "items": record, "logicalType": "map"}, make

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"


def opened(data: bytes) -> AvroColumns:
    return AvroColumns(pa.BufferReader(data), subject="f.avro")


def rows_of(columns: AvroColumns, places: list[int], *, rows: int = 64) -> list[dict[str, Any]]:
    parts = range(len(columns.starts) - 1)
    return [row for part in parts for batch in columns.batches(places, part, rows=rows) for row in batch.to_pylist()]


@pytest.mark.parametrize("seed", range(60))
def test_polars_decodes_what_was_written(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_columns, "PART_BYTES", 2_000)
    made = Made(seed)
    columns = opened(made.file(["null", "deflate"][seed % 2]))
    assert columns.starts[-1] == len(made.rows)
    assert [field_id(field) for field in columns.fields] == [*range(1, 7)]
    assert rows_of(columns, [*range(6)]) == made.shown
    some = [{name: row[name] for name in ("c1", "c4")} for row in made.shown]
    assert rows_of(columns, [1, 4]) == some
    assert len(rows_of(columns, [])) == len(made.rows)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("first", ["null", "record"])
def test_rows_of_a_union_with_null_are_its_records(first: str, codec: str) -> None:
    """Paimon to 0.8 writes such files. A null is no row, and refused as one."""
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}]
    record: Any = {"type": "record", "name": "r", "fields": fields}
    union = ["null", record] if first == "null" else [record, "null"]
    rows = [{"a": at, "b": None if at % 3 else "x" * at} for at in range(200)]

    def stored(records: list[Any]) -> AvroColumns:
        return opened(container_bytes(records, array_of(union), CODECS[codec], AvroHeader(union, {})))

    columns = stored(rows)
    assert rows_of(columns, [0, 1]) == rows and rows_of(columns, [1]) == [{"b": row["b"]} for row in rows]
    assert columns.branch == union.index(record) and rows_of(columns, []) == [{}] * 200
    # The null takes no byte after its branch: what follows is read as bytes of a record.
    with pytest.raises(CorruptMetadata):
        rows_of(stored([*rows[:9], None, *rows]), [0])


def test_a_type_that_is_named_again_has_its_meaning() -> None:
    fields = [{"name": "a", "type": _UUID, "field-id": 1}, {"name": "b", "type": ["null", "uuid_fixed"], "field-id": 2}]
    schema = {"type": "record", "name": "r", "fields": fields}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [{"a": b"0" * 16, "b": None}, {"a": b"1" * 16, "b": b"2" * 16}])
    columns = opened(out.getvalue())
    assert [field.type for field in columns.fields] == [pa.binary(16)] * 2
    assert rows_of(columns, [1]) == [{"b": None}, {"b": b"2" * 16}]


def test_a_column_of_nulls_alone_is_not_stored() -> None:
    fields = [{"name": "n", "type": "null", "field-id": 1}, {"name": "a", "type": "int", "field-id": 2}]
    out = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    fastavro.writer(out, schema, [{"n": None, "a": at} for at in range(3)])
    columns = opened(out.getvalue())
    assert [field_id(field) for field in columns.fields] == [1, 2]
    assert rows_of(columns, [0, 1]) == [{"n": None, "a": at} for at in range(3)]
    assert rows_of(columns, [0]) == [{"n": None}] * 3 and rows_of(columns, []) == [{}] * 3


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (["null", "int", "string"], "a union of several types"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "an enum"),
        ({"type": "record", "name": "e", "fields": []}, "a record without fields"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 1}, "decimals of more than 38 digits"),
    ],
)
def test_a_type_that_is_not_decoded_is_refused(kind: Any, reason: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": kind}]}
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), [])
    with pytest.raises(RefusedTable, match=f"{reason} in an Avro file"):
        opened(out.getvalue())


def test_damaged_bytes_are_corrupt_or_other_rows_but_never_too_few() -> None:
    random, made = Random(1), Made(3)
    data = made.file()
    with pytest.raises(CorruptMetadata, match="Parquet file"):
        opened(b"PAR1" + data[4:])
    for _ in range(300):
        broken = bytearray(data)
        broken[random.randrange(len(data))] ^= 1 << random.randrange(8)
        try:
            columns = opened(bytes(broken))
            places, parts = [*range(len(columns.fields))], range(len(columns.starts) - 1)
            found = sum(batch.num_rows for part in parts for batch in columns.batches(places, part, rows=64))
        except NightkeepError:
            continue
        assert found == columns.starts[-1]
    for size in range(0, len(data), 97):
        try:
            assert opened(data[:size]).starts[-1] <= len(made.rows)
        except NightkeepError:
            continue
