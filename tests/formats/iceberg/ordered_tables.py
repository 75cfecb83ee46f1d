"""Tables with a sort order, which pyiceberg makes and appends to; and the rows of their files, as they lie there."""

import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cmp_to_key
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.config import Config
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg import runs

from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument

_NIGHTS = count()
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "part", StringType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "name", StringType()),
    NestedField(5, "at", TimestampType()),
    NestedField(6, "ratio", DoubleType()),
    NestedField(7, "price", DecimalType(20, 2)),
    NestedField(8, "raw", BinaryType()),
    NestedField(9, "day", DateType()),
    NestedField(10, "flag", BooleanType()),
    NestedField(
        11, "inner", StructType(NestedField(12, "zone", TimestamptzType()), NestedField(13, "text", StringType()))
    ),
)
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("small", pa.int32()),
        ("name", pa.string()),
        ("at", pa.timestamp("us")),
        ("ratio", pa.float64()),
        ("price", pa.decimal128(20, 2)),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("inner", pa.struct([("zone", pa.timestamp("us", tz="UTC")), ("text", pa.string())])),
    ]
)
Key = tuple[str, str, str, str]
"""Column, transform, asc or desc, first or last."""


def by(column: str, transform: str = "identity", direction: str = "asc", nulls: str = "first") -> Key:
    return (column, transform, direction, nulls)


def rows(numbers: Sequence[int], chance: random.Random, parts: Sequence[str] = ("a",)) -> pa.Table:
    floats = [math.nan, -0.0, 0.0, math.inf, -math.inf]

    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    def row(number: int) -> dict[str, Any]:
        at = datetime(1969, 6, 1) + timedelta(minutes=chance.randrange(1_500_000))
        inner = {"zone": None, "text": some(f"t{chance.randrange(9)}")}
        return {
            "id": number,
            "part": chance.choice(parts),
            "small": some(chance.randrange(-5, 6)),
            "name": some(chance.choice(["", "a\x00", "ab", "\u00e9", "\U0001f600"]) + str(chance.randrange(50))),
            "at": some(at),
            "ratio": some(chance.choice(floats) if chance.random() < 0.3 else chance.uniform(-5, 5)),
            "price": some(Decimal(chance.randrange(-(10**19), 10**19)).scaleb(-2)),
            "raw": some(chance.randbytes(chance.randrange(6))),
            "day": some(date(1969, 1, 1) + timedelta(days=chance.randrange(800))),
            "flag": some(chance.random() < 0.5),
            "inner": some(inner),
        }

    return pa.Table.from_pylist([row(number) for number in numbers], ARROW)


@dataclass(frozen=True)
class OrderedTable:
    table: Table
    keys: tuple[Key, ...]

    @classmethod
    def create(cls, table: Table, *keys: Key, partition: str | None = None, **properties: str) -> "OrderedTable":
        """A table whose sort order has these fields."""
        namespace = table.name.rpartition(".")[0]
        table.warehouse.folder.mkdir(parents=True, exist_ok=True)
        catalog = theirs(table.warehouse.name)
        catalog.create_namespace_if_not_exists(namespace)
        fields = (
            [] if partition is None else [PartitionField(_id(partition), 1000, parse_transform("identity"), partition)]
        )
        catalog.create_table(
            table.name,
            SCHEMA,
            partition_spec=PartitionSpec(*fields),
            sort_order=order_of(keys),
            properties={"format-version": "2", **properties},
        )
        return cls(table, keys)

    @property
    def theirs(self) -> Any:
        return theirs(self.table.warehouse.name).load_table(self.table.name)

    def append(self, *tables: pa.Table) -> None:
        for each in tables:
            self.theirs.append(each)

    def night(self, outcome: Outcome = Outcome.VERIFIED, **settings: Any) -> RunDocument:
        done = runs.care_for(self.table, run_id=f"ordered {next(_NIGHTS)}", operation=Operation.OPTIMIZE, **settings)
        assert done.outcome is outcome, (done.outcome, done.reason, done.faults if hasattr(done, "faults") else "")
        return done

    def files(self) -> list[Any]:
        """The data files of the newest snapshot."""
        return [file for unit in runs.opened(self.table).snapshot().units for file in unit.files]

    def assert_sorted(self) -> None:
        """Each file that names the order is sorted by it, and those of one partition follow each other."""
        by_partition: dict[object, list[Any]] = {}
        for file in self.files():
            if file.sort_order_id:
                by_partition.setdefault((file.spec_id, file.partition), []).append(file)
        assert by_partition
        for files in by_partition.values():
            held = [stored(file.path) for file in files]
            for each in held:
                assert in_order(each, self.keys)
            held.sort(
                key=cmp_to_key(lambda a, b: comparing(self.keys)(a[0], b[0]) or comparing(self.keys)(a[-1], b[-1]))
            )
            assert in_order([row for each in held for row in each], self.keys)


def theirs(name: str) -> Catalog:
    # The settings of now: pyiceberg itself has read them when it was imported.
    return load_catalog(name, **(Config().get_catalog_config(name) or {}))


def order_of(keys: Sequence[Key]) -> SortOrder:
    return SortOrder(
        *(
            SortField(
                source_id=_id(column),
                transform=parse_transform(transform),
                direction=SortDirection.ASC if direction == "asc" else SortDirection.DESC,
                null_order=NullOrder.NULLS_FIRST if nulls == "first" else NullOrder.NULLS_LAST,
            )
            for column, transform, direction, nulls in keys
        )
    )


def _id(column: str) -> int:
    return SCHEMA.find_field(column).field_id


def stored(path: str) -> list[Mapping[str, Any]]:
    """The rows of a file in their order."""
    return pq.read_table(Path(unquote(urlsplit(path).path))).to_pylist()


def in_order(found: Sequence[Mapping[str, Any]], keys: Sequence[Key]) -> bool:
    compare = comparing(keys)
    return all(compare(a, b) <= 0 for a, b in pairwise(found))


def comparing(keys: Sequence[Key]) -> Callable[[Mapping[str, Any], Mapping[str, Any]], int]:
    """Compares two rows value by value, with pyiceberg's transforms of single values."""
    transforms = [parse_transform(each[1]).transform(SCHEMA.find_field(each[0]).field_type) for each in keys]

    def compare(left: Mapping[str, Any], right: Mapping[str, Any]) -> int:
        for (column, _, direction, nulls), transform in zip(keys, transforms, strict=True):
            a, b = (transform(_literal(_at(row, column))) for row in (left, right))
            if a is None or b is None:
                if a is not b:
                    return -1 if (a is None) == (nulls == "first") else 1
                continue
            one, other = _ordinal(a), _ordinal(b)
            if one != other:
                return (-1 if one < other else 1) * (-1 if direction == "desc" else 1)
        return 0

    return compare


def _at(row: Any, column: str) -> Any:
    for name in column.split("."):
        row = None if row is None else row[name]
    return row


def _literal(value: Any) -> Any:
    """A value in the form of pyiceberg's literals."""
    if isinstance(value, datetime):
        since = value.replace(tzinfo=None) - datetime(1970, 1, 1)
        return since // timedelta(microseconds=1)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def _ordinal(value: Any) -> Any:
    if isinstance(value, float):
        bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
        return (math.isnan(value), 0 if math.isnan(value) else bits if bits >= 0 else -(2**63) - bits - 1)
    return value.encode() if isinstance(value, str) else value
