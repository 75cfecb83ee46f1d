"""The gate's decoder of Parquet against Arrow's: the same rows of random files and of files that engines wrote, and a
decision beforehand who decodes what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.encodings import polars_rows
from nightkeep.encodings.parquet_footer import BINARY, I32, I64, LIST, STRUCT, Fields, footer_bytes
from nightkeep.encodings.parquet_rows import GroupDecoder, ParquetGroup, ParquetRows
from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.errors import CorruptMetadata
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.kernels.fingerprint import row_hashes
from nightkeep.kernels.parquet_pages import FlatChunk, has_sound_pages

ROOT = Path(__file__).parents[2]
STORED = [path for folder in ("samples", "tests/golden") for path in (ROOT / folder).rglob("*.parquet")]

DIGITS = st.text("0123456789abc\0\x7f", max_size=14)
FLAT: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.uint8(): st.integers(0, 2**8 - 1),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0]),
    pa.string(): DIGITS,
    pa.binary(): st.binary(max_size=20),
    pa.binary(5): st.binary(min_size=5, max_size=5),
    pa.date32(): st.dates(date(1, 1, 1)),
    pa.time64("us"): st.times(),
    pa.timestamp("ms"): st.integers(-(2**40), 2**40),
    pa.timestamp("us", "UTC"): st.integers(-(2**60), 2**60),
    pa.timestamp("ns"): st.integers(-(2**62), 2**62),
    pa.decimal128(7, 2): st.decimals(-99999, 99999, places=2),
    pa.decimal128(17, 0): st.integers(-(10**16), 10**16).map(Decimal),
    pa.decimal128(38, 10): st.decimals(-(10**20), 10**20, places=10),
}
OTHER: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.list_(pa.int32()): st.lists(st.none() | st.integers(0, 9), max_size=3),
    pa.struct([("x", pa.int32())]): st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)}),
    pa.dictionary(pa.int32(), pa.string()): DIGITS,
    pa.decimal256(50, 0): st.integers(-(10**40), 10**40).map(Decimal),
}
"""What Arrow decodes."""


class Watched:
    """The decoder, which also tells of each row group whether it took it."""

    def __init__(self) -> None:
        self.taken: list[bool] = []

    def __call__(self, group: ParquetGroup, batch_rows: int) -> Iterator[pa.RecordBatch] | None:
        batches = polars_batches(group, batch_rows)
        self.taken.append(batches is not None)
        return batches


def decoded(
    file: Path | pa.Buffer, decoder: GroupDecoder | None, leaves: Sequence[int] | None = None, batch_rows: int = 1 << 16
) -> list[pa.RecordBatch]:
    source = pa.BufferReader(file) if isinstance(file, pa.Buffer) else pa.OSFile(str(file), "rb")
    rows = ParquetRows(source, subject="f", decoder=decoder)
    chosen = range(len(rows.footer.schema)) if leaves is None else leaves
    return [without_views(batch) for _, batch in rows.batches(chosen, batch_rows=batch_rows)]


def require_the_same(file: Path | pa.Buffer, *, batch_rows: int = 1 << 16) -> list[bool]:
    """Both decoders find the same types and rows. Returns whether Polars took each row group."""
    watched = Watched()
    theirs, ours = (decoded(file, decoder, batch_rows=batch_rows) for decoder in (None, watched))
    assert [batch.schema.types for batch in ours] == [batch.schema.types for batch in theirs]
    assert list(map(hashes, ours)) == list(map(hashes, theirs))
    return watched.taken


def hashes(batch: pa.RecordBatch) -> list[tuple[int, int]]:
    return list(zip(*(lane.tolist() for lane in row_hashes(batch)), strict=True))


def written(table: pa.Table, **options: Any) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars takes row groups of any size."""
    monkeypatch.setattr(polars_rows, "LEAST_ROWS", 1)


@st.composite
def files(draw: st.DrawFn, kinds: Mapping[pa.DataType, st.SearchStrategy[Any]]) -> pa.Buffer:
    chosen = draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=4))
    rows = draw(st.integers(0, 40))
    columns, fields = [], []
    for place, kind in enumerate(chosen):
        nullable = draw(st.booleans())
        one = st.none() | kinds[kind] if nullable else kinds[kind]
        columns.append(pa.array(draw(st.lists(one, min_size=rows, max_size=rows)), kind))
        fields.append(pa.field(f"column {place}", kind, nullable=nullable))
    # Many rows of few values, so that dictionaries and runs are long and pages are several.
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    table = pa.concat_tables([table] * draw(st.sampled_from([1, 30])))
    return written(
        table,
        compression=draw(st.sampled_from(["none", "snappy", "zstd", "gzip", "brotli"])),
        data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
        use_dictionary=draw(st.booleans()),
        row_group_size=draw(st.sampled_from([7, 1000])),
        data_page_size=draw(st.sampled_from([64, 1 << 20])),
        store_schema=draw(st.booleans()),
        store_decimal_as_integer=draw(st.booleans()),
        write_page_checksum=draw(st.booleans()),
    )


@pytest.mark.usefixtures("small_groups")
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(FLAT), st.sampled_from([100, 1 << 16]), st.sampled_from([1, 1 << 20]))
def test_flat_columns_are_the_same_by_both_decoders(file: pa.Buffer, batch_rows: int, decoded_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polars_rows, "DECODED_BYTES", decoded_bytes)
        taken = require_the_same(file, batch_rows=batch_rows)
    assert all(taken) or not pq.ParquetFile(pa.BufferReader(file)).metadata.num_rows


@pytest.mark.usefixtures("small_groups")
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(FLAT | OTHER))
def test_files_with_other_columns_are_the_same_too(file: pa.Buffer) -> None:
    has_others = any(field.type in OTHER for field in pq.ParquetFile(pa.BufferReader(file)).schema_arrow)
    assert not any(require_the_same(file)) or not has_others


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        (pa.int64(), "DELTA_BINARY_PACKED"),
        (pa.int32(), "DELTA_BINARY_PACKED"),
        (pa.int64(), "BYTE_STREAM_SPLIT"),
        (pa.float64(), "BYTE_STREAM_SPLIT"),
        (pa.string(), "DELTA_LENGTH_BYTE_ARRAY"),
        (pa.string(), "DELTA_BYTE_ARRAY"),
        (pa.uint32(), "DELTA_BINARY_PACKED"),
        (pa.int32(), "BYTE_STREAM_SPLIT"),
        (pa.float32(), "BYTE_STREAM_SPLIT"),
        (pa.binary(), "DELTA_LENGTH_BYTE_ARRAY"),
        (pa.decimal128(9, 0), "DELTA_BINARY_PACKED"),
        (pa.decimal128(18, 0), "DELTA_BINARY_PACKED"),
        (pa.decimal128(18, 0), "BYTE_STREAM_SPLIT"),
        (pa.bool_(), "RLE"),
        (pa.binary(5), "PLAIN"),
        (pa.binary(5), "BYTE_STREAM_SPLIT"),
        (pa.binary(5), "DELTA_BYTE_ARRAY"),
    ],
)
@pytest.mark.parametrize("share", [0, 7, 1], ids=["no nulls", "some", "nulls only"])
def test_every_encoding_is_the_same_by_both(kind: pa.DataType, encoding: str, share: int) -> None:
    numbers = np.random.default_rng(3).integers(0, 1000, 3000).tolist()
    convert = (lambda n: bool(n % 2)) if kind == pa.bool_() else Decimal if pa.types.is_decimal(kind) else int
    values: Any = {pa.string(): "text %d", pa.binary(): b"bytes %d", pa.binary(5): b"%05d"}
    column = pa.array([values[kind] % n if kind in values else convert(n) for n in numbers], kind)
    nulls = pa.array([share > 0 and n % share == 0 for n in numbers])
    table = pa.table({"a": pc.if_else(nulls, None, column)})
    file = written(
        table, use_dictionary=False, column_encoding={"a": encoding}, data_page_size=1000, store_decimal_as_integer=True
    )
    is_known = encoding != "DELTA_BYTE_ARRAY" and (kind != pa.binary(5) or encoding == "PLAIN")
    assert require_the_same(file) == [is_known]


@pytest.mark.usefixtures("small_groups")
def test_files_of_the_engines_are_the_same_by_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """And headers of their pages are known."""
    known = list[bool]()

    def watched(data: bytes, chunk: FlatChunk) -> bool:
        known.append(has_sound_pages(data, chunk))
        return known[-1]

    monkeypatch.setattr(polars_rows, "has_sound_pages", watched)
    # Iceberg's writers of vectors name their files like data files.
    files = [path for path in STORED if path.read_bytes()[:4] == b"PAR1"]
    taken = [took for path in files for took in require_the_same(path)]
    assert taken.count(True) > len(taken) // 2
    assert known
    assert all(known)


@pytest.mark.usefixtures("small_groups")
def test_columns_beside_others_are_found_by_their_place() -> None:
    table = pa.table({"a": [1, 2], "n": [{"x": 1, "y": "z"}] * 2, "b": ["x", None], "c.d": [1.5, None]})
    watched = Watched()
    (batch,) = decoded(written(table), watched, [0, 3, 4])
    assert watched.taken == [True]
    assert batch.to_pydict() == {name: table.column(name).to_pylist() for name in ("a", "b", "c.d")}
    (batch,) = decoded(written(table), watched, [0, 1])
    assert watched.taken == [True, False]


@pytest.mark.parametrize(
    ("name", "value"), [("LEAST_ROWS", 101), ("STORED_BYTES", 100), ("_CODECS", {}), ("_ENCODINGS", {"PLAIN": 0})]
)
def test_arrow_decodes_what_is_small_or_large_or_unknown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(polars_rows, "LEAST_ROWS", 100)
    file = written(pa.table({"a": list(range(100))}))
    assert require_the_same(file) == [True]
    monkeypatch.setattr(polars_rows, name, value)
    assert require_the_same(file) == [False]


def test_few_columns_of_a_wide_group_are_read_by_arrow() -> None:
    table = pa.table({name: np.random.default_rng(0).integers(0, 2**60, 5000) for name in "abcdef"})
    watched = Watched()
    decoded(written(table, use_dictionary=False), watched, [0, 5])
    decoded(written(table, use_dictionary=False), watched, [0, 1])
    assert watched.taken == [False, True]


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.binary(1000), bytes(1000)), (pa.decimal128(9, 2), Decimal(1)), (pa.int32(), 1)],
    ids=["bytes", "decimals", "numbers"],
)
def test_decoded_rows_are_held_in_part_however_short_they_are_stored(
    monkeypatch: pytest.MonkeyPatch, kind: pa.DataType, value: object
) -> None:
    """Repeated values of fixed length take a few bytes in a file, and all of theirs in memory."""
    held, frame = list[int](), polars_rows._frame

    def watched(*of: Any) -> pl.DataFrame:
        found = frame(*of)
        held.append(found.estimated_size())
        return found

    monkeypatch.setattr(polars_rows, "DECODED_BYTES", 10_000)
    monkeypatch.setattr(polars_rows, "_frame", watched)
    file = written(pa.table({"a": pa.array([value] * 5000, kind)}), store_decimal_as_integer=True)
    decoded(file, polars_batches, batch_rows=1)
    assert held
    assert max(held) <= polars_rows.DECODED_BYTES


def struct(fields: Fields) -> bytes:
    """In Thrift's compact protocol."""
    return footer_bytes(fields)[: -len(b"SIZEPAR1")]


def nulls_without_a_width() -> pa.Buffer:
    """Four pages of 100 rows by one dictionary. The third has nulls only, and not even the width of its indexes: to
    Arrow they are nulls, and Polars panics."""
    pages = struct({1: (I32, 2), 2: (I32, 8), 3: (I32, 8), 7: (STRUCT, {1: (I32, 1), 2: (I32, 0)})}) + bytes(8)
    first = 4 + len(pages)
    for level, indexes in ((1, b"\x01\xc8\x01\x00"), (1, b"\x01\xc8\x01\x00"), (0, b""), (1, b"\x01\xc8\x01\x00")):
        body = b"\x03\0\0\0" + bytes([0xC8, 1, level]) + indexes
        told: Fields = {1: (I32, 100), 2: (I32, 8), 3: (I32, 3), 4: (I32, 3)}
        pages += struct({1: (I32, 0), 2: (I32, len(body)), 3: (I32, len(body)), 5: (STRUCT, told)}) + body
    column: Fields = {
        1: (I32, 2),
        2: (LIST, (I32, [0, 8, 3])),
        3: (LIST, (BINARY, [b"a"])),
        4: (I32, 0),
        5: (I64, 400),
        6: (I64, len(pages)),
        7: (I64, len(pages)),
        9: (I64, first),
        11: (I64, 4),
    }
    group: Fields = {1: (LIST, (STRUCT, [{2: (I64, 4), 3: (STRUCT, column)}])), 2: (I64, len(pages)), 3: (I64, 400)}
    schema: list[Fields] = [{4: (BINARY, b"schema"), 5: (I32, 1)}, {1: (I32, 2), 3: (I32, 1), 4: (BINARY, b"a")}]
    footer: Fields = {1: (I32, 2), 2: (LIST, (STRUCT, schema)), 3: (I64, 400), 4: (LIST, (STRUCT, [group]))}
    return pa.py_buffer(b"PAR1" + pages + footer_bytes(footer))


@pytest.mark.usefixtures("small_groups")
def test_rows_that_polars_cannot_decode_come_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polars_rows, "DECODED_BYTES", 1)
    file = nulls_without_a_width()
    assert require_the_same(file, batch_rows=100) == [True]
    (column,) = pa.Table.from_batches(decoded(file, polars_batches, batch_rows=100)).columns
    assert column.to_pylist() == [0] * 200 + [None] * 100 + [0] * 100


@pytest.mark.usefixtures("small_groups")
def test_rows_by_arrow_are_of_the_types_of_those_before() -> None:
    """Rows of one group are put together again."""
    table = pa.table({"a": range(100), "b": [f"text {n}" for n in range(100)], "c": [b"\xff"] * 100})

    def failing(group: ParquetGroup, batch_rows: int) -> Iterator[pa.RecordBatch]:
        yield next(polars_batches(group, batch_rows) or iter(()))
        raise CorruptMetadata(group.subject, "what is known", "another")

    rows = ParquetRows(pa.BufferReader(written(table)), subject="f", decoder=failing)
    found = pa.Table.from_batches([batch for _, batch in rows.batches([0, 1, 2], batch_rows=30)])
    assert found.schema.types == [pa.int64(), pa.string_view(), pa.binary_view()]
    assert without_views(found).to_pydict() == table.to_pydict()


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("use_dictionary", [False, True])
@pytest.mark.parametrize(("version", "told"), [("1.0", b"\x2c\x15"), ("2.0", b"\x5c\x15")])
def test_a_page_of_less_than_no_values_does_not_reach_polars(version: str, told: bytes, use_dictionary: bool) -> None:
    """Of 2^61 bytes to allocate, it aborts the process."""
    options = {"compression": "none", "data_page_version": version, "use_dictionary": use_dictionary}
    sound = written(pa.table({"a": [f"text {n}" for n in range(100)]}), **options).to_pybytes()
    damaged = sound.replace(told + b"\xc8\x01", told + b"\xc7\x01")
    assert damaged != sound
    with pytest.raises(CorruptMetadata, match="negative number of values"):
        decoded(pa.py_buffer(damaged), polars_batches)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_flipped_bits_are_corruption_or_other_rows(checksums: bool, version: str) -> None:
    """And nothing else, such as a panic. With checksums, what is decoded is what Arrow decodes that verifies them."""
    table = pa.table({"a": range(5000), "b": [f"text {n % 50}" for n in range(5000)], "c": [1.5, None] * 2500})
    random = np.random.default_rng(5)
    corrupt = 0
    for codec in ("none", "snappy", "zstd"):
        options = {"compression": codec, "write_page_checksum": checksums, "data_page_version": version}
        sound = written(table, **options).to_pybytes()
        pages = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
        # Headers, dictionaries and levels are at the beginnings of chunks.
        footer = pq.ParquetFile(pa.BufferReader(sound)).metadata.row_group(0)
        starts = [footer.column(n).dictionary_page_offset or footer.column(n).data_page_offset for n in range(3)]
        places = [
            *random.integers(4, pages, 40),
            *(int(at + random.integers(0, 60)) for at in starts for _ in range(15)),
        ]
        for at in places:
            damaged = bytearray(sound)
            damaged[at] ^= 1 << int(random.integers(0, 8))
            file = pa.py_buffer(bytes(damaged))
            try:
                found = decoded(file, polars_batches)
            except CorruptMetadata:
                corrupt += 1
                continue
            if checksums:
                assert list(map(hashes, found)) == list(map(hashes, decoded(file, None)))
    assert corrupt


def test_a_file_cut_within_its_pages_is_corrupt() -> None:
    table = pa.table({"a": range(5000)})
    whole = written(table, compression="none").to_pybytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    cut = whole[:4] + whole[footer:]
    with pytest.raises(CorruptMetadata, match="f: expected pages"):
        decoded(pa.py_buffer(cut), polars_batches)
