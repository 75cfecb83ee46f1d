"""ORC files by two readers that share nothing, Arrow's in C++ and ORC's in Java: the same rows at the same places."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from py4j.protocol import Py4JError
from pyarrow import orc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema
from tests.support.examples import examples

from nightkeep.encodings.orc_rows import OrcRows
from nightkeep.encodings.orc_writing import write_rows
from nightkeep.model.arrow_types import ArrowField
from nightkeep.spark.orc_files import LABEL, ROW_INDEX, orc_rows
from nightkeep.spark.releases import arrow_of

pytestmark = pytest.mark.slow

INNER = pa.struct([("a", pa.int64()), ("t", pa.string()), ("at", pa.timestamp("us", "UTC"))])
PLAIN: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "small decimal": pa.decimal128(5, 2),
    "large decimal": pa.decimal128(38, 10),
    "day": pa.date32(),
    "instant": pa.timestamp("us", "UTC"),
}
NESTED: Mapping[str, pa.DataType] = {
    "struct": INNER,
    "deep": pa.struct([("s", pa.struct([("i", INNER), ("l", pa.list_(pa.int32()))]))]),
    "lists": pa.list_(pa.list_(pa.string())),
    "structs": pa.list_(INNER),
    "map": pa.map_(pa.string(), INNER),
    "maps": pa.list_(pa.map_(pa.int32(), pa.decimal128(12, 3))),
}
WALL_TIMES: Mapping[str, pa.DataType] = {"wall": pa.timestamp("us"), "walls": pa.list_(pa.timestamp("us"))}
"""Not for Spark's own writer: it stores them as whole numbers."""


class Dice(Random):
    """Values of any type; how often they are null or alike changes from column to column."""

    nulls = 0.2
    alike = False

    def column(self, kind: pa.DataType, count: int) -> pa.Array:
        self.nulls, self.alike = self.choice([0, 0, 0.1, 0.5, 1]), self.random() < 0.4
        return pa.array([self.value(kind) for _ in range(count)], kind)

    def value(self, kind: pa.DataType) -> Any:
        if self.random() < self.nulls:
            return None
        if isinstance(kind, pa.StructType):
            return {field.name: self.value(field.type) for field in kind}
        if isinstance(kind, pa.MapType):
            # No reader of rows keeps a second value of a key.
            keys = [f"k{at}" if pa.types.is_string(kind.key_type) else at for at in range(self.randrange(3))]
            return [(key, self.value(kind.item_type)) for key in keys]
        if isinstance(kind, pa.ListType):
            return [self.value(kind.value_type) for _ in range(self.randrange(4))]
        return self.choice(EDGES[kind]) if self.random() < 0.1 else self.plain(kind)

    def plain(self, kind: pa.DataType) -> Any:
        size = self.randrange(3) if self.alike else self.getrandbits(self.choice([6, 30, 62]))
        if pa.types.is_integer(kind):
            return (size % (1 << (kind.bit_width - 1))) * self.choice([1, -1])
        if pa.types.is_decimal(kind):
            return Decimal(size % 10 ** min(kind.precision, 18)).scaleb(-kind.scale)
        return MADE[kind](size)


MADE: Mapping[pa.DataType, Callable[[int], Any]] = {
    pa.bool_(): lambda size: size % 2 == 0,
    pa.float32(): lambda size: size % 4096 / 8,
    pa.float64(): lambda size: size / 3,
    pa.string(): lambda size: f"text {size} \u00e9",
    pa.binary(): lambda size: size.to_bytes(8, "big"),
    pa.date32(): lambda size: date(1583, 1, 1) + timedelta(size % 200_000),
    pa.timestamp("us", "UTC"): lambda size: (
        datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=size % 9 * 10**15)
    ),
    pa.timestamp("us"): lambda size: datetime(1970, 1, 1) + timedelta(microseconds=size % 9 * 10**15),
}
EDGES: Mapping[pa.DataType, list[Any]] = {
    pa.bool_(): [True],
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 2**15 - 1],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.float32(): [float("nan"), -0.0, float("inf")],
    pa.float64(): [float("nan"), -0.0, float("-inf"), 5e-324],
    pa.string(): ["", " blank ", "null"],
    pa.binary(): [b"", b"\0\xff"],
    pa.decimal128(5, 2): [Decimal("-999.99")],
    pa.decimal128(12, 3): [Decimal("999999999.999")],
    pa.decimal128(38, 10): [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.0000000001")],
    pa.date32(): [date(1, 1, 1), date(1500, 3, 1), date(1582, 10, 10), date(9999, 12, 31)],
    pa.timestamp("us", "UTC"): [datetime(1700, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)],
    pa.timestamp("us"): [datetime(1700, 1, 1), datetime(2261, 12, 31, 23, 59, 59, 999_999)],
}


def drawn(dice: Dice, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    count = dice.choice([0, 1, 40, 400])
    return pa.table({name: dice.column(kind, count) for name, kind in kinds.items()})


def write(path: Path, rows: pa.Table, dice: Dice, *, stripes: bool = False) -> None:
    """As a rewrite does, in slices; of several encodings, and with `stripes` of several stripes."""
    batch_rows, step = 16 if stripes else dice.choice([16, 1024]), dice.choice([97, 1000])
    codec = "uncompressed" if stripes else dice.choice(["uncompressed", "zlib", "snappy", "lz4", "zstd"])
    with orc.ORCWriter(
        path,
        batch_size=batch_rows,
        stripe_size=1 if stripes else dice.choice([1, 1 << 20]),
        compression=codec,
        dictionary_key_size_threshold=dice.choice([0.0, 1.0]),
    ) as writer:
        for start in range(0, max(rows.num_rows, 1), step):
            write_rows(writer, rows.slice(start, step), batch_rows=batch_rows)


def by_arrow(path: Path, names: list[str]) -> list[str]:
    stored = OrcRows(pa.memory_map(str(path)), subject=path.name)
    return spelt(stored.read(names, range(len(stored.starts) - 1)))


def by_java(spark: SparkSession, paths: list[Path], columns: T.StructType) -> dict[str, list[str]]:
    rows = arrow_of(orc_rows(spark, [(str(n), str(path)) for n, path in enumerate(paths)], columns))
    found = {}
    for n in range(len(paths)):
        of_file = rows.filter(pc.equal(rows.column(LABEL), str(n))).sort_by(ROW_INDEX)
        assert of_file.column(ROW_INDEX).to_pylist() == list(range(of_file.num_rows))
        found[str(n)] = spelt(of_file.select(columns.names))
    return found


def spelt(rows: pa.Table) -> list[str]:
    """Rows as text, in which NaN equals NaN, and 0.0 is not -0.0."""
    return [repr(row) for row in comparable(rows).to_pylist()]


def comparable(rows: pa.Table) -> pa.Table:
    """Arrow reads times as nanoseconds, and those of Spark's writer without a zone. Spark's writer moves days out of
    the range of Python's."""

    def shown(kind: Any) -> Any:
        if pa.types.is_timestamp(kind):
            return pa.timestamp("us")
        if pa.types.is_date(kind):
            return pa.int32()
        if pa.types.is_map(kind):
            return pa.map_(shown(kind.key_type), shown(kind.item_type))
        if pa.types.is_list(kind):
            return pa.list_(shown(kind.value_type))
        return pa.struct([(f.name, shown(f.type)) for f in kind]) if pa.types.is_struct(kind) else kind

    return rows.cast(pa.schema([(field.name, shown(field.type)) for field in rows.schema]))


def test_both_readers_have_the_rows_that_a_rewrite_writes(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {**PLAIN, **NESTED, **WALL_TIMES}
    tables, paths = [], []
    for seed in range(examples(25)):
        dice = Dice(seed)
        tables.append(drawn(dice, kinds))
        paths.append(tmp_path / f"{seed}.orc")
        write(paths[-1], tables[-1], dice, stripes=seed == 0)
    assert orc.ORCFile(paths[0]).nstripes > 2
    found = by_java(spark, paths, from_arrow_schema(tables[0].schema, prefer_timestamp_ntz=True))
    for seed, (table, path) in enumerate(zip(tables, paths, strict=True)):
        assert found[str(seed)] == spelt(table), seed
        assert by_arrow(path, list(kinds)) == spelt(table), seed


def test_both_readers_have_the_rows_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {**PLAIN, **NESTED}
    codecs, paths = ["none", "zlib", "snappy", "lz4", "zstd"], []
    for seed in range(examples(10)):
        rows = spark.createDataFrame(drawn(Dice(1000 + seed), kinds)).coalesce(1)
        options = {"compression": codecs[seed % len(codecs)], "orc.dictionary.key.threshold": str(seed % 2)}
        rows.write.options(**options).orc(str(tmp_path / str(seed)))
        paths += (tmp_path / str(seed)).glob("*.orc")
    found = by_java(spark, paths, from_arrow_schema(pa.schema(kinds)))
    for seed, path in enumerate(paths):
        assert found[str(seed)] == by_arrow(path, list(kinds)), seed


def test_what_a_file_does_not_hold_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a file.orc"
    orc.write_table(pa.table({"n": pa.array([300], pa.int32()), "at": pa.array([1], pa.timestamp("ns"))}), path)

    def failure(columns: str, **options: Any) -> str:
        with pytest.raises((PySparkException, Py4JError)) as found:
            orc_rows(spark, [("0", str(path))], struct(columns), **options).collect()
        return str(found.value)

    assert f"{path}: column at: a INT, found timestamp" in failure("at int")
    assert f"{path}: column n: a STRING, found int" in failure("n string")
    assert f"{path}: column m, found [n, at]" in failure("m int", required=["m"])
    assert orc_rows(spark, [("0", str(path))], struct("m int, at long, n long")).first()[2:] == (None, 1, 300)
    path.write_bytes(path.read_bytes()[:-9])
    assert f"{path}: " in failure("n int")


def test_columns_and_fields_are_found_by_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    def with_id(name: str, kind: pa.DataType, number: int) -> ArrowField:
        return pa.field(name, kind, metadata={"iceberg.id": str(number)})

    inner = pa.struct([with_id("f7", pa.int32(), 6), with_id("x", pa.float32(), 7)])
    kinds = pa.schema([with_id("f2", pa.int32(), 1), with_id("s", pa.list_(with_id("element", inner, 5)), 2)])
    path = tmp_path / "f.orc"
    orc.write_table(pa.table({"f2": [4], "s": [[{"f7": 8, "x": 0.5}, None]]}, kinds), path)
    wanted = struct("f2 array<struct<f9: string, f7: double, f6: bigint>>, f1 bigint, f3 int")
    found = orc_rows(spark, [("0", str(path))], wanted, by_id=True).first()
    assert found[2:] == ([(None, 0.5, 8), None], 4, None)
    named = orc_rows(spark, [("0", str(path))], struct("f1 int, f2 int"), names={"f1": "f2"}).first()
    assert named[2:] == (4, None)


def struct(text: str) -> T.StructType:
    kind = T._parse_datatype_string(text)
    assert isinstance(kind, T.StructType)
    return kind
