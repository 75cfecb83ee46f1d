"""Seeds -> small tables written by Iceberg Java as Flink's writers do. Same rows on every run; names and times differ.

Run from the repository: python -m samples.make_iceberg_samples
"""

import shutil
import tempfile
from datetime import date, timedelta
from pathlib import Path
from random import Random

from samples.iceberg_places import NOWHERE, Move
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, Warehouse

SAMPLES = Path(__file__).parent / "iceberg"
START = date(2026, 11, 1)
DAYS = 4
PROPERTIES = {"write.parquet.compression-codec": "zstd", "write.metadata.metrics.default": "truncate(16)"}

ORDERS: tuple[Column, ...] = (
    ("order_id", "long", True),
    ("day", "date", True),
    ("customer_id", "int"),
    ("status", "string"),
    ("total", "decimal(10,2)"),
    ("note", "string"),
)
CUSTOMERS: tuple[Column, ...] = (
    ("customer_id", "int", True),
    ("email", "string"),
    ("city", "string"),
    ("points", "long"),
    ("changed_at", "timestamptz"),
)
STATES = ("created", "paid", "packed", "shipped", "delivered", "returned")


def orders(java: IcebergJava, table: Table) -> None:
    """Upserts by (order_id, day) in each of eight checkpoints, a few files for each day from them."""
    random = Random(1)
    java.create(table, ORDERS, Layout((("day", "identity"),), 2, PROPERTIES))
    numbers = range(12_000)
    for start in range(0, len(numbers), 4_000):
        java.append(table, [_order(n, random) for n in numbers[start : start + 4_000]])
    for _ in range(8):
        changed = [("+I", _order(random.randrange(len(numbers)), random)) for _ in range(220)]
        repeated = [("+U", [*row[:3], "cancelled", *row[4:]]) for _, row in changed[:15]]
        deleted = [("-D", _order(random.randrange(len(numbers)), random)) for _ in range(25)]
        java.cdc(table, [*changed, *repeated, *deleted], keys=("order_id", "day"))


def customers(java: IcebergJava, table: Table) -> None:
    """No partitions; upserts by customer_id in ten checkpoints, with deletion vectors of what a checkpoint repeats."""
    random = Random(2)
    java.create(table, CUSTOMERS, Layout((), 3, PROPERTIES))
    java.append(table, [_customer(n, 0, random) for n in range(8_000)], rows_per_file=2_000)
    for hour in range(1, 11):
        changed = [("+I", _customer(int(8_300 * random.random() ** 2), hour, random)) for _ in range(180)]
        deleted = [("-D", _customer(random.randrange(8_000), hour, random)) for _ in range(10)]
        java.cdc(table, [*changed, *deleted], keys=("customer_id",))


ICEBERG_SAMPLES = (orders, customers)


def _order(number: int, random: Random) -> list[object]:
    day = (START + timedelta(days=number % DAYS)).isoformat()
    note = None if random.random() < 0.6 else random.choice(("gift", "", "call first", "na\u00efve", "leave at door"))
    total = f"{random.randrange(100, 90_000) / 100:.2f}"
    return [number, day, random.randrange(8_000), random.choice(STATES), total, note]


def _customer(number: int, hour: int, random: Random) -> list[object]:
    city = random.choice(("Aarhus", "Bologna", "C\u00f3rdoba", "Delft", "Espoo", None))
    at = f"2026-11-01T{hour:02d}:{random.randrange(60):02d}:00Z"
    return [number, f"c{number}@example.org", city, random.randrange(500), at]


def main() -> None:
    shutil.rmtree(SAMPLES, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch, IcebergJava() as java:
        warehouse = Warehouse("samples", Path(scratch) / "warehouse")
        for sample in ICEBERG_SAMPLES:
            sample(java, warehouse.table(f"shop.{sample.__name__}"))
        shutil.copytree(warehouse.folder / "shop", SAMPLES / "shop")
        Move(SAMPLES, warehouse.folder, NOWHERE).run()


if __name__ == "__main__":
    main()
