"""What other engines make of our commits, staged and published: the same rows, a history, a table to go on with."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.delta_spark import DeltaSpark, latest_version, named
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.laid_anew import BY_ID, a_run, laid_anew
from tests.formats.delta.vacuum import vacuum

from nightkeep.formats.delta.format import DeltaTable, open_table
from nightkeep.model import Address, Candidate, View

DAYS = ("2026-11-01", "2026-11-02", None)
FILTERS = 6


def filled(made: HandMade) -> HandMade:
    """Three days in three files each, the first with vectors, the last without a day."""
    for day in DAYS:
        for start in (0, 40, 80):
            made.append(day, range(start, start + 40))
    made.delete("2026-11-01", range(10, 70))
    return made


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return filled(HandMade(tmp_path / "a b'c" / "t"))


@pytest.fixture
def tracked(tmp_path: Path) -> HandMade:
    return filled(HandMade(tmp_path / "tracked", row_ids=True))


def opened(made: HandMade) -> DeltaTable:
    return open_table(Address("delta", str(made.folder), "shop.events"))


def staged(made: HandMade) -> tuple[DeltaTable, Candidate]:
    table, run = opened(made), a_run()
    snapshot = table.snapshot()
    return table, table.commits.stage(snapshot, [laid_anew(table, unit, run) for unit in snapshot.units], run)


def published(made: HandMade) -> Candidate:
    table, candidate = staged(made)
    assert not table.gate.faults(table.snapshot(), table.staged(candidate), candidate.units)
    assert table.commits.commit(candidate)
    return candidate


def every_reader(delta_spark: DeltaSpark, lakes: Lakes, table: Path, where: str | None = None) -> Rows:
    """The rows all three agree on, and this repository too."""
    rows = delta_spark.read(table, where=where)
    assert lakes.delta_rs_read(table, where=where) == rows, where
    assert lakes.duckdb_read(table, where=where) == rows, where
    return rows


def filters(random: Random) -> Iterator[str]:
    """On data columns and the partition column, with and without nulls."""
    for _ in range(FILTERS):
        low = random.randrange(120)
        yield random.choice(
            (
                f"id BETWEEN {low} AND {low + random.randrange(5)}",
                f"price < {low / 4} AND day = DATE '2026-11-01'",
                f"note > 'note 0{low % 50:02d}' OR day IS NULL",
                f"note IS NULL AND id >= {low}",
                "note = '' AND day IN (DATE '2026-11-02', DATE '2027-01-01')",
                f"NOT (id > {low} OR price < 3)",
            )
        )


def test_staged_files_are_seen_by_nobody(delta_spark: DeltaSpark, lakes: Lakes, made: HandMade) -> None:
    """Nor is the file that a death while publishing leaves, and all engines go on over both."""
    before, history = every_reader(delta_spark, lakes, made.folder), len(lakes.delta_rs_history(made.folder))
    _, candidate = staged(made)
    shutil.copy(made.folder / candidate.metadata, made.folder / f"{candidate.metadata}.tmp")
    delta_spark.forget()
    assert every_reader(delta_spark, lakes, made.folder) == before
    assert len(lakes.delta_rs_history(made.folder)) == history
    assert len(delta_spark.sql(f"DESCRIBE HISTORY {named(made.folder)}").rows) == history
    delta_spark.sql(f"INSERT INTO {named(made.folder)} VALUES (999, 1.5, 'new', DATE '2026-11-02')")
    delta_spark.checkpoint(made.folder)
    lakes.delta_rs_checkpoint(made.folder)
    lakes.delta_rs_vacuum(made.folder, retention_hours=0, dry_run=False)
    assert len(every_reader(delta_spark, lakes, made.folder).rows) == len(before.rows) + 1
    assert (made.folder / candidate.metadata).exists() and (made.folder / f"{candidate.metadata}.tmp").exists()


@pytest.mark.extended
def test_every_engine_reads_the_same_rows(delta_spark: DeltaSpark, lakes: Lakes, made: HandMade) -> None:
    wheres = ["TRUE", *filters(Random(4))]
    before = delta_spark.find(made.folder, wheres)
    assert sum(bool(rows.rows) for rows in before) > FILTERS / 2
    candidate = published(made)
    delta_spark.forget()
    assert delta_spark.find(made.folder, wheres) == before
    for read in (lakes.delta_rs_read, lakes.duckdb_read):
        assert [read(made.folder, where=where) for where in wheres] == before
    assert latest_version(made.folder) == candidate.version


def test_the_history_reads_naturally(delta_spark: DeltaSpark, lakes: Lakes, made: HandMade) -> None:
    """Beside the commit that delta-spark makes of the same request."""
    candidate = published(made)
    delta_spark.forget()
    statement = f"OPTIMIZE {named(made.folder)} WHERE day >= '2026-11-01' ZORDER BY (id, price)"
    delta_spark.sql(statement)
    theirs, ours = delta_spark.sql(f"DESCRIBE HISTORY {named(made.folder)}").dicts()[:2]
    assert ours["version"] == candidate.version
    for key in ("operation", "isolationLevel", "isBlindAppend"):
        assert ours[key] == theirs[key]
    told, expected = (dict(row["operationParameters"]) for row in (ours, theirs))
    assert {k: v for k, v in told.items() if k != "predicate"} == {
        k: v for k, v in expected.items() if k != "predicate"
    }
    assert json.loads(told["predicate"]) == [BY_ID.where]
    assert dict(ours["operationMetrics"]).keys() == dict(theirs["operationMetrics"]).keys()
    assert dict(ours["operationMetrics"])["numRemovedFiles"] == "9"
    assert ours["userMetadata"].startswith("nightkeep-") and ours["engineInfo"].startswith("Nightkeep/")
    rust = lakes.delta_rs_history(made.folder)[1]
    assert (rust["operation"], rust["userMetadata"]) == ("OPTIMIZE", ours["userMetadata"])


@pytest.mark.extended
def test_delta_spark_goes_on(delta_spark: DeltaSpark, lakes: Lakes, made: HandMade) -> None:
    before = len(made.rows())
    published(made)
    delta_spark.forget()
    table = named(made.folder)
    delta_spark.sql(f"DELETE FROM {table} WHERE id < 5")
    rows = every_reader(delta_spark, lakes, made.folder)
    assert len(rows.rows) == before - 15
    assert any("deletionVector" in add for add in made.live().values())
    delta_spark.sql(f"INSERT INTO {table} VALUES (1000, 2.5, 'late', DATE '2026-11-01')")
    delta_spark.sql(f"UPDATE {table} SET note = 'changed' WHERE id = 1000")
    assert every_reader(delta_spark, lakes, made.folder, "note = 'changed'").column("id") == (1000,)
    published(made)
    delta_spark.forget()
    now = every_reader(delta_spark, lakes, made.folder)
    assert len(now.rows) == before - 14
    delta_spark.sql(f"OPTIMIZE {table} ZORDER BY (id)")
    vacuum(delta_spark, made.folder)
    assert every_reader(delta_spark, lakes, made.folder) == now
    assert not list(made.folder.rglob("*nk-*.parquet"))


@pytest.mark.extended
def test_row_ids_stay_with_their_rows(delta_spark: DeltaSpark, tracked: HandMade) -> None:
    columns = ("day", "id", "price", "note", "_metadata.row_id", "_metadata.row_commit_version")
    before = delta_spark.read(tracked.folder, columns=columns)
    published(tracked)
    delta_spark.forget()
    assert delta_spark.read(tracked.folder, columns=columns) == before
    delta_spark.sql(f"INSERT INTO {named(tracked.folder)} VALUES (999, 1.5, 'new', DATE '2026-11-02')")
    delta_spark.sql(f"DELETE FROM {named(tracked.folder)} WHERE id = 100")
    now = delta_spark.read(tracked.folder, columns=columns)
    kept = set(map(str, before.rows))
    assert len([row for row in map(str, now.rows) if row not in kept]) == 1
    assert len(set(now.column("row_id"))) == len(now.rows)
    assert opened(tracked).snapshot().in_commit_timestamp is not None


@pytest.mark.extended
@pytest.mark.parametrize("rewrites", ["ours", "delta-spark's"])
def test_a_restore_to_before_our_commit_is_the_way_back(
    delta_spark: DeltaSpark, lakes: Lakes, made: HandMade, rewrites: str
) -> None:
    before, rows = made.version, every_reader(delta_spark, lakes, made.folder)
    published(made)
    delta_spark.forget()
    if rewrites != "ours":
        delta_spark.sql(f"OPTIMIZE {named(made.folder)} ZORDER BY (id)")
    delta_spark.sql(opened(made).commits.rollback(before))
    assert every_reader(delta_spark, lakes, made.folder) == rows
    names = {add["path"] for add in made.live().values()}
    assert not [name for name in names if "-nk-" in name]


def test_our_reader_reads_what_the_engines_read(delta_spark: DeltaSpark, made: HandMade) -> None:
    table = opened(made)
    held: list[dict[str, Any]] = []
    for unit in table.snapshot().units:
        for batch in table.gate.rows(unit, table.gate.survivors(unit, View.RAW)):
            held += batch.to_pylist()
    ours = sorted((str(row["day"]), row["id"], row["note"]) for row in held if row["note"] is not None)
    theirs = delta_spark.read(made.folder, where="note IS NOT NULL").dicts()
    assert ours == sorted((str(row["day"]), row["id"], row["note"]) for row in theirs)
