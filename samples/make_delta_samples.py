"""Seeds -> small tables written by delta-spark. Same rows on every run; names and times are Delta's own.

Run from the repository: python -m samples.make_delta_samples
"""

import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
from tests.drivers.delta_spark import DeltaSpark, Writing, named

WAREHOUSE = Path(__file__).parent / "delta"
START = datetime(2026, 11, 1, tzinfo=UTC)
VECTORS = {"delta.enableDeletionVectors": "true"}

_NO_STATISTICS = {"spark.databricks.delta.stats.collect": "false"}

CLICKS = pa.schema(
    [
        ("click_id", pa.int64()),
        ("user_id", pa.int32()),
        ("page", pa.string()),
        ("referrer", pa.string()),
        ("value", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
    ]
)
READINGS = pa.schema(
    [
        ("device_id", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("temperature", pa.float64()),
        ("battery", pa.float32()),
        ("place", pa.struct([("room", pa.string()), ("floor", pa.int16())])),
        ("note", pa.string()),
    ]
)


def clicks(spark: DeltaSpark, table: Path) -> None:
    """Ten commits with a file in each of four days, then days with one file and with nothing left."""
    random = Random(1)
    writing = Writing(partition_by=("day",), properties=VECTORS)
    for batch in range(10):
        numbers = range(batch * 400, batch * 400 + 400)
        spark.write(table, _clicks([(n, n % 4) for n in numbers], random), writing)
    spark.write(table, _clicks([(n, 4) for n in range(4000, 4150)], random), writing)
    # Delta removes a file whose statistics state that its vector leaves nothing: these have none.
    with spark.configured(_NO_STATISTICS):
        spark.write(table, _clicks([(n, 5) for n in range(4150, 4300)], random), writing)
        spark.write(table, _clicks([(n, 5) for n in range(4300, 4450)], random), writing)
    for condition in (
        "day = '2026-11-06' AND click_id >= 0",
        "day = '2026-11-05' AND user_id % 3 = 0",
        "user_id BETWEEN 40 AND 60",
        "day = '2026-11-02' AND page = '/cart'",
    ):
        spark.sql(f"DELETE FROM {named(table)} WHERE {condition}")


def readings(spark: DeltaSpark, table: Path) -> None:
    """Thirty commits in the order of time, each with all devices; corrected and renamed later."""
    random = Random(2)
    properties = {
        **VECTORS,
        "delta.columnMapping.mode": "name",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
    }
    for hour in range(30):
        spark.write(table, _readings(hour, random), Writing(properties=properties))
    spark.sql(f"ALTER TABLE {named(table)} RENAME COLUMN note TO remark")
    spark.sql(f"UPDATE {named(table)} SET temperature = NULL WHERE device_id = 17 AND temperature > 30")


def accounts(spark: DeltaSpark, table: Path) -> None:
    """One file, nothing deleted: there is nothing to do."""
    random = Random(3)
    names = ("Ada", "Bj\u00f6rk", "Chlo\u00e9", "Dmitri", "Eun-ji", "\u0424\u0451\u0434\u043e\u0440")
    rows = {
        "account_id": pa.array(range(500), pa.int32()),
        "name": [random.choice(names) for _ in range(500)],
        "opened_on": [date(2020, 1, 1) + timedelta(days=random.randrange(2000)) for _ in range(500)],
        "balance": pa.array([Decimal(random.randrange(-10_000, 10**7)).scaleb(-2) for _ in range(500)], CLICKS[4].type),
    }
    spark.write(table, pa.table(rows))


DELTA_SAMPLES = (clicks, readings, accounts)


def main() -> None:
    shutil.rmtree(WAREHOUSE, ignore_errors=True)
    with DeltaSpark() as spark:
        for sample in DELTA_SAMPLES:
            sample(spark, WAREHOUSE / "shop.db" / sample.__name__)
    # Checksums, of Hadoop for each file and of Delta for each version: no reader asks for one that is not there.
    for file in WAREHOUSE.rglob("*.crc"):
        file.unlink()
    for folder in WAREHOUSE.rglob("_staged_commits"):
        folder.rmdir()


def _clicks(numbers: list[tuple[int, int]], random: Random) -> pa.Table:
    """Pairs of a number and a day; several clicks of a user are near each other in time."""
    rows = []
    for number, day in numbers:
        at = START + timedelta(days=day, seconds=random.randrange(86_400), microseconds=random.randrange(10**6))
        referrer = None if random.random() < 0.4 else f"https://example.org/{random.randrange(50)}"
        page = random.choice(("/", "/cart", "/search", "/na\u00efve", f"/item/{random.randrange(300)}"))
        value = None if random.random() < 0.2 else Decimal(random.randrange(100, 90_000)).scaleb(-2)
        rows.append((number, random.randrange(400), page, referrer, value, at, at.date()))
    return _table(rows, CLICKS)


def _readings(hour: int, random: Random) -> pa.Table:
    """Every device about three times in the hour."""
    rows = []
    for _ in range(240):
        device = random.randrange(80)
        at = START + timedelta(hours=hour, microseconds=random.randrange(3600 * 10**6))
        temperature = random.choice((None, float("nan"), -0.0)) if random.random() < 0.02 else random.gauss(20, 6)
        place = None if device % 20 == 0 else {"room": f"room {device % 12}", "floor": device % 4}
        note = None if random.random() < 0.9 else random.choice(("door open", "", "recalibrated"))
        rows.append((device, at, temperature, random.randrange(1000) / 8, place, note))
    return _table(rows, READINGS)


def _table(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


if __name__ == "__main__":
    main()
