"""Tables whose rows were deleted and replaced by every writer, each by one sequence of commits that a seed tells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Column, Table
from tests.formats.iceberg.golden_deletes import ON_READ
from tests.formats.iceberg.runs import address

from nightkeep.api.changes import Workers, apply_batch
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode

COLUMNS: Sequence[Column] = (
    ("id", "long", True),
    ("day", "date"),
    ("name", "string"),
    ("price", "decimal(9,2)"),
    ("real", "double"),
    ("seen", "timestamptz"),
    ("shop", "int"),
)
NAMES = [column[0] for column in COLUMNS]
DAYS = ("2026-10-30", "2026-11-01", "2026-11-02")
BY_DAY = (("day", "identity"),)
BY_MONTH_AND_BUCKET = (("day", "month"), ("id", "bucket[2]"))
Row = list[Any]
Change = tuple[str, Row]


@dataclass(frozen=True)
class Written:
    """A table in the making, by the engines that write it."""

    java: IcebergJava
    spark: Callable[[], IcebergSpark]
    table: Table
    random: Random
    undated: int = 7
    """Each row of so many has no day."""

    def row(self, number: int) -> Row:
        """Only the day follows from the number: no key moves to another partition."""
        word = self.random.choice(("item", "it", "thing", "\u4e2d\u6587", "o"))
        real = self.random.choice((self.random.gauss(0, 100), "NaN", "Infinity", "-0.0", None))
        return [
            number,
            None if self.undated and number % self.undated == 0 else DAYS[number % 3],
            self.random.choice((f"{word}-{self.random.randrange(50)}", "", None)),
            self.random.choice((f"{self.random.randrange(-500, 500)}.{self.random.randrange(100):02d}", None)),
            round(real, 3) if isinstance(real, float) else real,
            f"2026-11-0{1 + self.random.randrange(3)}T{self.random.randrange(24):02d}:00:00.000000Z",
            self.random.choice((*range(5), None)),
        ]

    def append(self, numbers: range, *, files: int = 3) -> None:
        self.java.append(self.table, map(self.row, numbers), rows_per_file=len(numbers) // files)

    def changes(self, numbers: range, count: int) -> list[Change]:
        """Of keys that are there and of new ones, some of which change twice."""
        some = self.random.choices(range(numbers.start, numbers.stop + 5), k=count)
        return [(self.random.choice(("+I", "+U", "+U", "-D")), self.row(n)) for n in some]

    def upserts(self, numbers: range, count: int = 20, *, keys: tuple[str, ...] = ("id", "day")) -> None:
        """From the newest snapshot on: Java cannot commit vectors from the table's first if that has expired."""
        written = self.java.checkpoint(self.table, self.changes(numbers, count), keys=keys)
        self.java.commit(self.table, written, base=self.table.document()["current-snapshot-id"])


def by_java(made: Written, version: int) -> None:
    """One partition; keys of one column, and at last another."""
    made.java.create(made.table, COLUMNS, Layout(format_version=version))
    made.append(range(120), files=4)
    made.upserts(range(120), keys=("id",))
    made.append(range(200, 240))
    made.upserts(range(240), 30, keys=("id",))
    made.java.commit(made.table, made.java.equality_deletes(made.table, [[n] for n in (-1, 3, 99)], keys=("shop",)))


def by_java_under_three_specs(made: Written, version: int) -> None:
    """Deletes of each spec; those of the first hold for all of them."""
    made.java.create(made.table, COLUMNS, Layout(format_version=version))
    made.append(range(60))
    made.upserts(range(60), keys=("id",))
    made.java.alter(made.table, {"change": "add_partition_field", "column": "day", "transform": "identity"})
    made.append(range(60, 120), files=9)
    made.upserts(range(60, 120))
    made.java.alter(made.table, {"change": "add_partition_field", "column": "id", "transform": "bucket[2]"})
    made.append(range(120, 180), files=9)
    made.upserts(range(120, 180))
    everywhere = [[n] for n in range(0, 200, 11)]
    made.java.commit(made.table, made.java.equality_deletes(made.table, everywhere, keys=("id",), spec_id=0))


def by_spark(made: Written, version: int) -> None:
    """Merge-on-read before, between and after upserts: files with deletes of both kinds."""
    made = replace(made, undated=0)
    made.java.create(made.table, COLUMNS, Layout(BY_DAY, version, ON_READ))
    made.append(range(120), files=12)
    spark = made.spark()
    spark.attach(made.table.warehouse)
    spark.sql(merge(made.table, range(0, 130, 9)))
    made.upserts(range(120))
    spark.sql(
        f"UPDATE {made.table.sql} SET name = 'updated', shop = NULL WHERE id % 10 = 3",
        f"DELETE FROM {made.table.sql} WHERE id % 10 = 4",
    )
    made.upserts(range(120))


def by_us(made: Written, version: int) -> None:
    """Our own upsert writer, in every mode."""
    made = replace(made, undated=0)
    made.java.create(made.table, COLUMNS, Layout(BY_MONTH_AND_BUCKET, version))
    rows = [made.row(n) for n in range(120)]
    for start in (0, 40, 80):
        applied(made.table, f"rows-{start}", [("+I", row) for row in rows[start : start + 40]], ChangeMode.APPEND)
    applied(made.table, "upserts", made.changes(range(120), 25), ChangeMode.UPSERT)
    applied(made.table, "more upserts", made.changes(range(120), 25), ChangeMode.UPSERT)
    applied(made.table, "changes", [("-U", rows[5]), ("+U", made.row(5)), ("-D", rows[8])], ChangeMode.CHANGES)


WRITERS: Mapping[str, Callable[[Written, int], None]] = {
    make.__name__: make for make in (by_java, by_java_under_three_specs, by_spark, by_us)
}


def applied(table: Table, batch_id: str, changes: Sequence[Change], mode: ChangeMode) -> None:
    """Through Parquet: JSON has no NaN."""
    path = Path(table.warehouse.folder) / f"{batch_id}.parquet"
    rows = arrow([row for _, row in changes])
    pq.write_table(rows.append_column("_change_type", pa.array([kind for kind, _ in changes])), path)
    keys = () if mode is ChangeMode.APPEND else ("id", "day")
    apply_batch(address(table), ChangeBatch(batch_id, (str(path),), mode, keys=keys), Workers())


def arrow(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table({name: list(map(_KINDS[name], some)) for name, some in zip(NAMES, columns, strict=True)})


def _maybe(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


_KINDS = {
    "id": int,
    "day": _maybe(date.fromisoformat),
    "name": _maybe(str),
    "price": _maybe(Decimal),
    "real": _maybe(float),
    "seen": _maybe(datetime.fromisoformat),
    "shop": _maybe(int),
}


def merge(table: Table, numbers: range) -> str:
    """Some rows deleted, some updated, some new, of the days that deletes may be of."""
    some = ", ".join(f"({n}L, DATE'{DAYS[n % 3]}')" for n in numbers)
    return f"""MERGE INTO {table.sql} t USING (SELECT * FROM VALUES {some} AS v(id, day)) s
        ON t.id = s.id AND t.day = s.day WHEN MATCHED AND s.id % 2 = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET name = 'merged', price = 7.25
        WHEN NOT MATCHED THEN INSERT ({", ".join(NAMES)}) VALUES (s.id, s.day, 'merged', 1.5, NULL, NULL, 9)"""
