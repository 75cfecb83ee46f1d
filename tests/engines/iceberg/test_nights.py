"""Writers and nights in any order: no night changes what Java sees, and the last one leaves nothing to do."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.formats.iceberg import runs
from tests.formats.iceberg.optimized_lake import OptimizedLake, by

from nightkeep.model import Curve, Operation, Outcome

pytestmark = pytest.mark.in_turn("version")

PROPERTIES = {"commit.manifest.min-count-to-merge": "4", "commit.manifest-merge.enabled": "false"}
KEYS = ["id", "k"]


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[OptimizedLake]:
    with runs.configured(iceberg):
        yield OptimizedLake(iceberg_java, iceberg.table())


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_nights_between_writers(lake: OptimizedLake, version: int, seed: int) -> None:
    chance = random.Random(100 * version + seed)
    lake.create(format_version=version, properties=PROPERTIES, partition=(("k", "identity"),))
    lake.append(some_rows(chance, 60), rows_per_file=5)
    for _ in range(12):
        chance.choice((appended, upserted, deleted, marked, persisted, packed, clustered))(lake, chance)
    lake.night(full=True)
    assert lake.live(1, 2) == []
    assert lake.night(full=True).outcome is Outcome.UNCHANGED


def some_rows(chance: random.Random, count: int) -> list[list[Any]]:
    return [[number, number % 3, f"text {chance.randrange(1000)}"] for number in chance.sample(range(300), count)]


def appended(lake: OptimizedLake, chance: random.Random) -> None:
    lake.append(some_rows(chance, chance.randrange(1, 40)), rows_per_file=chance.randrange(3, 20))


def upserted(lake: OptimizedLake, chance: random.Random) -> None:
    rows = some_rows(chance, 30)
    changes = [(chance.choice(("+U", "-D")), chance.choice(rows)) for _ in range(40)]
    lake.java.cdc(lake.table, changes, keys=KEYS)


def deleted(lake: OptimizedLake, chance: random.Random) -> None:
    k = chance.randrange(3)
    keys = [[3 * chance.randrange(100) + k] for _ in range(10)]
    lake.delete(keys, "id", partition=[k])


def marked(lake: OptimizedLake, chance: random.Random) -> None:
    files = chance.sample(lake.live(), min(3, len(lake.live())))
    positions = sorted({(each["file_path"], chance.randrange(each["record_count"])) for each in files for _ in "ab"})
    if lake.snapshot.schema.has_row_lineage:
        lake.commit(lake.java.vectors(lake.table, positions))
    else:
        kind = chance.choice(("file", "partition"))
        lake.commit(lake.java.position_deletes(lake.table, positions, granularity=kind))


def persisted(lake: OptimizedLake, chance: random.Random) -> None:
    before = lake.shown()
    done = runs.care_for(lake.table, run_id=f"persist {chance.random()}", operation=Operation.PERSIST_DELETES)
    assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
    assert lake.shown() == before


def packed(lake: OptimizedLake, chance: random.Random) -> None:
    target = chance.choice((None, 2_000, 4_000))
    lake.night(target_size=target, max_deleted_ratio=chance.choice((0.05, 0.5)), where=chance.choice((None, "k < 2")))


def clustered(lake: OptimizedLake, chance: random.Random) -> None:
    clustering = by(*chance.choice((("id",), ("v", "id"))), curve=chance.choice((*Curve,)))
    lake.night(clustering=clustering, target_size=4_000, exchange_above=chance.choice((None, 0)))
