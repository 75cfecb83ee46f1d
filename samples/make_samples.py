"""Seeds -> small tables written by Paimon Java. Same rows on every run; names and times are Paimon's own.

Run from the repository: python -m samples.make_samples
"""

import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer

WAREHOUSE = Path(__file__).parent / "paimon"
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
START = datetime(2026, 11, 1, 6, tzinfo=UTC)

Row = list[Any]


class Story:
    """One table and the engine that writes it: commits of a writer, compactions of another user."""

    def __init__(self, engine: PaimonJava, table: Path, layout: Layout) -> None:
        self._engine = engine
        self.table = table
        self._commits = 0
        engine.create(table, layout)

    def commit(self, rows: Sequence[Row]) -> None:
        self._commits += 1
        self._engine.write(self.table, rows, Writer(user="shop-writer", identifier=self._commits))

    def compact(self, *, full: bool) -> None:
        self._engine.compact(self.table, Compaction(full=full, user="shop-compactor"))

    def alter(self, *changes: dict[str, str]) -> None:
        self._engine.alter(self.table, *changes)


def orders(engine: PaimonJava, table: Path) -> None:
    """A base at the top level, a level and vectors of one compaction, then three commits in L0."""
    layout = Layout(
        columns=[
            ("dt", "STRING NOT NULL"),
            ("order_id", "BIGINT NOT NULL"),
            ("customer_id", "STRING"),
            ("status", "STRING"),
            ("amount", "DECIMAL(12, 2)"),
            ("note", "STRING"),
            ("updated_at", "TIMESTAMP(6)"),
        ],
        primary_keys=["dt", "order_id"],
        partition_keys=["dt"],
        options=_options(bucket="2"),
    )
    random = Random(1)
    story = Story(engine, table, layout)
    story.commit([_order(n, random) for n in range(4800)])
    story.compact(full=True)
    story.commit([_order(n, random) for n in random.sample(range(4800), 240)])
    story.compact(full=False)
    for first_new in (4800, 4860, 4920):
        changed = random.sample(range(first_new), 80)
        rows = [_order(n, random, kind="-D" if i % 8 == 0 else "+U") for i, n in enumerate(changed)]
        story.commit(rows + [_order(n, random) for n in range(first_new, first_new + 60)])


def customers(engine: PaimonJava, table: Path) -> None:
    """A sequence field: late and undated changes lose, also against rows below L0."""
    layout = Layout(
        columns=[
            ("customer_id", "STRING NOT NULL"),
            ("name", "STRING"),
            ("tier", "TINYINT"),
            ("credit", "DOUBLE"),
            ("updated_at", "TIMESTAMP(3)"),
        ],
        primary_keys=["customer_id"],
        options=_options(bucket="2", sequence_field="updated_at"),
    )
    random = Random(2)
    story = Story(engine, table, layout)
    story.commit([_customer(n, random) for n in range(3000)])
    story.compact(full=True)
    story.commit([_customer(n, random) for n in random.sample(range(3100), 1000)])
    story.compact(full=False)
    for _ in range(2):
        changed = random.choices(range(3200), k=150)
        story.commit([_customer(n, random, kind=random.choice(("+U", "+U", "+U", "-D"))) for n in changed])


def positions(engine: PaimonJava, table: Path) -> None:
    """Composite key, two partition columns, every primitive type, 64-bit vectors, nulls and odd numbers."""
    layout = Layout(
        columns=[("day", "DATE NOT NULL"), ("region", "STRING NOT NULL"), *POSITION_COLUMNS],
        primary_keys=["day", "region", "device", "ts"],
        partition_keys=["day", "region"],
        options=_options(bucket="1", **{"deletion-vectors.bitmap64": "true"}),
    )
    random = Random(3)
    story = Story(engine, table, layout)
    story.commit([_position(n, random) for n in range(1200)])
    story.compact(full=True)
    story.commit([_position(n, random) for n in random.sample(range(1200), 60)])
    story.compact(full=False)
    changed = random.sample(range(1200), 80)
    story.commit([_position(n, random, kind="-D" if i % 6 == 0 else "+U") for i, n in enumerate(changed)])
    story.commit([_position(n, random) for n in range(1190, 1260)])


def stock(engine: PaimonJava, table: Path) -> None:
    """Columns were added, renamed and widened after the base was written."""
    layout = Layout(
        columns=[("sku", "INT NOT NULL"), ("shop", "SMALLINT NOT NULL"), ("pieces", "INT"), ("shelf", "STRING")],
        primary_keys=["sku", "shop"],
        options=_options(bucket="2", **{"bucket-key": "sku"}),
    )
    random = Random(4)
    story = Story(engine, table, layout)
    story.commit([_stock(n, random) for n in range(600)])
    story.compact(full=True)
    story.alter(
        {"change": "add_column", "name": "counted_on", "type": "DATE"},
        {"change": "rename_column", "name": "shelf", "to": "place"},
        {"change": "change_type", "name": "pieces", "type": "BIGINT"},
    )
    changed = random.sample(range(640), 90)
    rows = [_stock(n, random, kind="-D" if i % 9 == 0 else "+U") for i, n in enumerate(changed)]
    story.commit([[*row, DAYS[i % len(DAYS)]] for i, row in enumerate(rows)])


def events_input(engine: PaimonJava, table: Path) -> None:
    """The writer keeps the changelog itself: compaction adds nothing to it."""
    layout = Layout(
        columns=[("event_id", "BIGINT NOT NULL"), ("kind", "STRING"), ("score", "INT")],
        primary_keys=["event_id"],
        options=_options(bucket="1", **{"changelog-producer": "input"}),
    )
    random = Random(5)
    story = Story(engine, table, layout)
    state = {n: ["view", n % 7] for n in range(2000)}
    story.commit([["+I", n, *values] for n, values in state.items()])
    story.compact(full=False)
    for step in range(2):
        changed = sorted(random.sample(sorted(state), 60))
        story.commit(list(_changes(changed, state, step)))


def untouched(engine: PaimonJava, table: Path) -> None:
    """Compacted to the last file: there is nothing to do."""
    story = Story(engine, table, _plain_layout(_options(bucket="2")))
    story.commit([["+I", n, f"item {n}"] for n in range(300)])
    story.compact(full=True)


def ledger(engine: PaimonJava, table: Path) -> None:
    """No deletion vectors: readers merge, and the upgrade is refused."""
    story = Story(engine, table, _plain_layout({"bucket": "1", "write-only": "true"}))
    story.commit([["+I", n, f"entry {n}"] for n in range(200)])
    story.commit([["+U", n, f"entry {n} again"] for n in range(0, 200, 5)])


def baskets(engine: PaimonJava, table: Path) -> None:
    """Partial updates by two writers: each has a sequence group, late changes and nulls."""
    layout = Layout(
        columns=[
            ("basket_id", "BIGINT NOT NULL"),
            ("items", "INT"),
            ("total", "DECIMAL(10, 2)"),
            ("changed_at", "INT"),
            ("paid", "BOOLEAN"),
            ("payments", "BIGINT"),
            ("paid_at", "INT"),
        ],
        primary_keys=["basket_id"],
        options=_options(
            bucket="2",
            **{
                "merge-engine": "partial-update",
                "fields.changed_at.sequence-group": "items,total",
                "fields.paid_at.sequence-group": "paid,payments",
                "fields.payments.aggregate-function": "sum",
            },
        ),
    )
    random = Random(8)
    story = Story(engine, table, layout)
    story.commit([_basket(n, 0, random) for n in range(2500)])
    story.compact(full=True)
    for step in range(1, 5):
        story.commit([_basket(n, step, random) for n in random.sample(range(2500 + 40 * step), 150)])


def visits(engine: PaimonJava, table: Path) -> None:
    """Aggregation: sums, a maximum, and the last value that is not null; some rows take back what others added."""
    layout = Layout(
        columns=[
            ("page", "STRING NOT NULL"),
            ("day", "DATE NOT NULL"),
            ("views", "BIGINT"),
            ("longest", "INT"),
            ("referrer", "STRING"),
        ],
        primary_keys=["page", "day"],
        options=_options(
            bucket="2",
            **{
                "merge-engine": "aggregation",
                "fields.views.aggregate-function": "sum",
                "fields.longest.aggregate-function": "max",
                "fields.longest.ignore-retract": "true",
                "fields.referrer.aggregate-function": "last_non_null_value",
            },
        ),
    )
    random = Random(9)
    story = Story(engine, table, layout)
    story.commit([_visit(n, random) for n in range(2400)])
    story.compact(full=True)
    for step in range(3):
        changed = random.choices(range(2300, 2460), k=120)
        story.commit([_visit(n, random, kind="-U" if (n + step) % 9 == 0 else "+I") for n in changed])


def parcels(engine: PaimonJava, table: Path) -> None:
    """changelog-producer=lookup: streaming readers follow the table, and compaction reports to them what changed."""
    layout = Layout(
        columns=[("parcel_id", "STRING NOT NULL"), ("status", "STRING"), ("place", "STRING"), ("weight", "DOUBLE")],
        primary_keys=["parcel_id"],
        options=_options(bucket="2", **{"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}),
    )
    random = Random(10)
    story = Story(engine, table, layout)
    story.commit([_parcel(n, random) for n in range(2000)])
    story.compact(full=True)
    for first_new in (2000, 2030, 2060):
        changed = random.sample(range(first_new), 70)
        rows = [_parcel(n, random, kind="-D" if i % 7 == 0 else "+U") for i, n in enumerate(changed)]
        story.commit(rows + [_parcel(n, random) for n in range(first_new, first_new + 30)])


def prices(engine: PaimonJava, table: Path) -> None:
    """No deletion vectors: readers merge a compacted run and six newer ones."""
    layout = Layout(
        columns=[
            ("sku", "INT NOT NULL"),
            ("currency", "STRING NOT NULL"),
            ("price", "DECIMAL(9, 2)"),
            ("since", "DATE"),
        ],
        primary_keys=["sku", "currency"],
        options={"bucket": "2", "write-only": "true"},
    )
    random = Random(11)
    story = Story(engine, table, layout)
    story.commit([_price(n, random) for n in range(2600)])
    story.compact(full=True)
    for _ in range(6):
        changed = random.sample(range(2700), 160)
        story.commit([_price(n, random, kind="-D" if i % 8 == 0 else "+U") for i, n in enumerate(changed)])


def events_raw(engine: PaimonJava, table: Path) -> None:
    """No primary key: many small files of two days, and vectors over two of them."""
    layout = Layout(
        columns=[("day", "DATE NOT NULL"), ("at", "TIMESTAMP(3)"), ("device", "INT"), ("value", "DOUBLE")],
        partition_keys=["day"],
        options={"bucket": "-1", "write-only": "true", "deletion-vectors.enabled": "true"},
    )
    random = Random(12)
    story = Story(engine, table, layout)
    commits = [[_reading(commit * 200 + n, random) for n in range(200)] for commit in range(12)]
    story.commit(commits[0])
    first = engine.files(table)
    for rows in commits[1:]:
        story.commit(rows)
    engine.delete_positions(table, {file.name: range(0, 60, 7) for file in first}, user="shop-writer")


SAMPLES = (
    orders,
    customers,
    positions,
    stock,
    events_input,
    untouched,
    ledger,
    baskets,
    visits,
    parcels,
    prices,
    events_raw,
)

POSITION_COLUMNS = (
    ("device", "INT NOT NULL"),
    ("ts", "TIMESTAMP(6) NOT NULL"),
    ("moving", "BOOLEAN"),
    ("satellites", "TINYINT"),
    ("heading", "SMALLINT"),
    ("odometer", "INT"),
    ("distance", "BIGINT"),
    ("speed", "FLOAT"),
    ("latitude", "DOUBLE"),
    ("toll", "DECIMAL(9, 2)"),
    ("fuel", "DECIMAL(18, 4)"),
    ("precise", "DECIMAL(38, 10)"),
    ("zone", "CHAR(3)"),
    ("plate", "VARCHAR(20)"),
    ("remark", "STRING"),
    ("tag", "BINARY(4)"),
    ("frame", "VARBINARY(16)"),
    ("raw", "BYTES"),
    ("serviced_on", "DATE"),
    ("shift_start", "TIME(3)"),
    ("seen_s", "TIMESTAMP(0)"),
    ("seen_ms", "TIMESTAMP(3)"),
    ("seen_ns", "TIMESTAMP(9)"),
    ("received", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
)


def main() -> None:
    shutil.rmtree(WAREHOUSE, ignore_errors=True)
    with PaimonJava() as engine:
        for sample in SAMPLES:
            sample(engine, WAREHOUSE / "shop.db" / sample.__name__)


def _options(*, bucket: str, sequence_field: str | None = None, **others: str) -> dict[str, str]:
    options = {"bucket": bucket, "deletion-vectors.enabled": "true", "write-only": "true", **others}
    return options if sequence_field is None else {**options, "sequence.field": sequence_field}


def _plain_layout(options: dict[str, str]) -> Layout:
    columns = [("id", "INT NOT NULL"), ("text", "STRING")]
    return Layout(columns=columns, primary_keys=["id"], options=options)


def _order(number: int, random: Random, *, kind: str = "+I") -> Row:
    at = START + timedelta(seconds=number * 97, microseconds=random.randrange(1_000_000))
    return [
        kind,
        DAYS[number % len(DAYS)],
        10_000 + number,
        f"C-{random.randrange(3000):05d}",
        random.choice(("created", "paid", "packed", "shipped", "delivered")),
        f"{random.randrange(100, 90_000) / 100:.2f}",
        None if random.random() < 0.3 else f"gift for {random.randrange(1000)}",
        at.strftime("%Y-%m-%dT%H:%M:%S.%f"),
    ]


def _customer(number: int, random: Random, *, kind: str = "+I") -> Row:
    at = START + timedelta(seconds=random.randrange(200_000))
    dated = random.random() > 0.1
    name = random.choice(("Ada", "Bj\u00f6rk", "Chlo\u00e9", "Dmitri", "Eun-ji", "\u0424\u0451\u0434\u043e\u0440"))
    updated_at = at.strftime("%Y-%m-%dT%H:%M:%S.000") if dated else None
    return [kind, f"C-{number:05d}", name, random.randrange(4), random.random() * 1000, updated_at]


def _position(number: int, random: Random, *, kind: str = "+I") -> Row:
    at = START + timedelta(seconds=number // 20 * 30, microseconds=number)
    day = date(2026, 11, 1 + number % 2)
    values = [None if random.random() < 0.1 else value for value in _measured(number, at, random)]
    key = [number % 20, at.strftime("%Y-%m-%dT%H:%M:%S.%f")]
    return [kind, day.isoformat(), ("north", "west:coast")[number // 2 % 2], *key, *values]


def _measured(number: int, at: datetime, random: Random) -> Row:
    odd = ("NaN", "Infinity", "-Infinity", "-0.0", 0.0)
    return [
        random.random() < 0.5,
        random.randrange(-128, 128),
        random.randrange(-32768, 32768),
        random.randrange(-(2**31), 2**31),
        random.randrange(-(2**63), 2**63),
        odd[number % 5] if number % 7 == 0 else random.randrange(1000) / 8,
        odd[number % 5] if number % 11 == 0 else random.uniform(-90, 90),
        str(Decimal(random.randrange(-(10**9) + 1, 10**9)).scaleb(-2)),
        str(Decimal(random.randrange(-(10**18) + 1, 10**18)).scaleb(-4)),
        format(Decimal(random.randrange(-(10**28), 10**28)).scaleb(-10), "f"),
        random.choice(("A1 ", "B22", "Z\u00fc9")),
        f"NK {random.randrange(10_000)}",
        random.choice(("", "parked", "na\u00efve route", "x" * 40)),
        random.randbytes(4).hex(),
        random.randbytes(random.randrange(17)).hex(),
        random.randbytes(random.randrange(40)).hex(),
        (at.date() - timedelta(days=random.randrange(20_000, 40_000))).isoformat(),
        f"{random.randrange(24):02d}:{random.randrange(60):02d}:00.{random.randrange(1000):03d}",
        at.strftime("%Y-%m-%dT%H:%M:%S"),
        at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{random.randrange(1000):03d}",
        at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{random.randrange(10**9):09d}",
        at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    ]


def _stock(number: int, random: Random, *, kind: str = "+I") -> Row:
    return [kind, 500 + number // 3, number % 3, random.randrange(1000), f"shelf {random.randrange(40)}"]


def _basket(number: int, step: int, random: Random) -> Row:
    """A change of one of the two writers, whose time may be before that of an earlier one; at first, of both."""
    at = 1000 * step + random.randrange(1500)
    items = [random.randrange(1, 20), f"{random.randrange(100, 50_000) / 100:.2f}", at]
    payment = [random.random() < 0.8, random.randrange(1, 3), at]
    nothing = [None, None, None]
    if step:
        items, payment = (items, nothing) if random.random() < 0.6 else (nothing, payment)
    return ["+I", number, *(None if random.random() < 0.05 else value for value in items), *payment]


def _visit(number: int, random: Random, *, kind: str = "+I") -> Row:
    referrer = random.choice((None, None, "search", "mail", "partner"))
    return [kind, f"/goods/{number // 2}", DAYS[number % 2], random.randrange(1, 9), random.randrange(600), referrer]


def _parcel(number: int, random: Random, *, kind: str = "+I") -> Row:
    status = random.choice(("packed", "sent", "at the border", "delivered"))
    return [kind, f"P{number:06d}", status, random.choice(("Basel", "Lyon", "Graz")), random.randrange(100, 9000) / 8]


def _price(number: int, random: Random, *, kind: str = "+I") -> Row:
    price = f"{random.randrange(99, 99_999) / 100:.2f}"
    return [
        kind,
        number // 2,
        ("EUR", "CHF")[number % 2],
        None if random.random() < 0.03 else price,
        random.choice(DAYS),
    ]


def _reading(number: int, random: Random) -> Row:
    at = START + timedelta(seconds=number * 31)
    value = None if random.random() < 0.05 else random.gauss(20, 5)
    return ["+I", DAYS[number % 2], at.strftime("%Y-%m-%dT%H:%M:%S.000"), random.randrange(40), value]


def _changes(numbers: Sequence[int], state: dict[int, Row], step: int) -> Iterator[Row]:
    for i, number in enumerate(numbers):
        before = state[number]
        if i % 6 == 0:
            del state[number]
            yield ["-D", number, *before]
        else:
            state[number] = ["buy", before[1] + step + 1]
            yield ["-U", number, *before]
            yield ["+U", number, *state[number]]


if __name__ == "__main__":
    main()
