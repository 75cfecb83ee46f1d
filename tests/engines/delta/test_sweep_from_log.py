"""Sweeps from the log beside delta-spark: it reads what it read, and neither finds what the other one removed."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from urllib.parse import unquote

import pytest
from tests.drivers.delta_spark import DeltaSpark, latest_version, named
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.runs import opened
from tests.formats.delta.sweeping import aged, readable, swept
from tests.formats.delta.swept_log import OWN
from tests.formats.delta.vacuum import SMALL

from nightkeep.formats.delta.retention.action_files import vector_names
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import FoundBy, SweepMode
from nightkeep.protocol.table_files import LogPoint

FEATURES = (
    "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
    "'delta.enableInCommitTimestamps' = 'false', 'delta.checkpointInterval' = '7'"
)
KINDS = ("vectors", "partitions", "mapping", "times")
HISTORIES = 50


def made(delta_spark: DeltaSpark, table: Path, kind: str) -> None:
    partitioned = " PARTITIONED BY (day)" if kind in ("partitions", "mapping") else ""
    properties = {
        "vectors": FEATURES,
        "partitions": "'delta.enableChangeDataFeed' = 'true'",
        "mapping": "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
        "times": "'delta.enableInCommitTimestamps' = 'true'",
    }[kind]
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, day STRING) USING delta{partitioned} TBLPROPERTIES ({properties})"
    )


def statements(random: Random, table: Path, count: int) -> Sequence[str]:
    """Appends, changes, compactions and returns to versions of this night, as others are beyond the retention."""
    first = latest_version(table) + 1
    found, version = [f"INSERT INTO {named(table)} SELECT id, concat('d ', id % 3) FROM range(0, 60)"], first
    kinds = ("insert", "insert", "delete", "update", "optimize", "overwrite", "restore")
    for number in range(count):
        start = 100 * (number + 1)
        match random.choice(kinds):
            case "insert":
                found.append(f"INSERT INTO {named(table)} SELECT id, 'd 1' FROM range({start}, {start + 20})")
            case "delete":
                found.append(f"DELETE FROM {named(table)} WHERE id % {random.randrange(2, 9)} = 1")
            case "update":
                found.append(f"UPDATE {named(table)} SET id = id + 10000 WHERE id % {random.randrange(2, 9)} = 0")
            case "optimize":
                found.append(f"OPTIMIZE {named(table)}")
            case "overwrite":
                found.append(f"INSERT OVERWRITE {named(table)} SELECT id, 'd 2' FROM range({start}, {start + 9})")
            case "restore":
                found.append(f"RESTORE TABLE {named(table)} TO VERSION AS OF {random.randrange(first, version + 1)}")
        version += 1
    return found


def names(table: Path) -> set[str]:
    found = (path for path in table.rglob("*") if path.is_file() and not OWN & {*path.parts})
    return {str(path.relative_to(table)) for path in found if not path.name.endswith(".crc")}


def from_log(table: Path, since: LogPoint | None = None) -> tuple[Outcome, set[str], LogPoint | None]:
    """A sweep from the log that deletes; the files that are gone since, and the point that it reached."""
    before = names(table)
    result, _ = swept(table, SweepMode.DELETE, found_by=FoundBy.LOG, since=since, max_share=1.0)
    assert result.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), result.reason
    return result.outcome, before - names(table), result.through


def vacuum_lite(delta_spark: DeltaSpark, table: Path) -> set[str]:
    """The files that VACUUM LITE deletes."""
    before = names(table)
    delta_spark.forget()
    with delta_spark.configured({**SMALL, "spark.databricks.delta.vacuum.logging.enabled": "false"}):
        delta_spark.sql(f"VACUUM {named(table)} LITE")
    return before - names(table)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_both_delete_the_same_files_and_find_nothing_after_the_other(
    kind: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path, copied: Callable[[Path, str], Path]
) -> None:
    table = tmp_path / "events"
    made(delta_spark, table, kind)
    delta_spark.sql(
        f"INSERT INTO {named(table)} SELECT id, concat('d ', id % 3) FROM range(0, 60)",
        f"DELETE FROM {named(table)} WHERE id % 7 = 1",
        f"UPDATE {named(table)} SET id = id + 1000 WHERE id % 5 = 0",
        f"OPTIMIZE {named(table)}",
        f"INSERT INTO {named(table)} SELECT id, 'd 1' FROM range(100, 120)",
        f"RESTORE TABLE {named(table)} TO VERSION AS OF 2",
        f"DELETE FROM {named(table)} WHERE day = 'd 1'",
        f"OPTIMIZE {named(table)}",
    )
    # A checkpoint has tombstones of today, which keep their files.
    for path in [*(table / "_delta_log").glob("*.checkpoint*"), *(table / "_delta_log").glob("_last_checkpoint")]:
        path.unlink()
    aged(table, late=2)
    theirs, reverse = copied(table, "theirs"), copied(table, "reverse")
    rows = readable(delta_spark, table)
    assert len(rows) > 1

    outcome, lost, through = from_log(table)
    assert outcome is Outcome.VERIFIED and lost
    assert vacuum_lite(delta_spark, table) == set()
    delta_spark.forget()
    # The commits of both vacuums are new versions.
    after = readable(delta_spark, table)
    assert {version: after.get(version) for version in rows} == rows
    assert lakes.delta_rs_read(table) == rows[max(rows)]

    deleted = vacuum_lite(delta_spark, theirs)
    assert deleted == lost
    assert from_log(theirs)[:2] == (Outcome.UNCHANGED, set())
    assert from_log(reverse, since=through)[1] == set(), "the mark is of the same log"
    assert not swept(table)[1] & named_by_log(table)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path, str], Path]:
    return lambda table, name: Path(shutil.copytree(table, tmp_path / name))


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_histories_keep_every_version_that_may_be_read(
    seed: int, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    """Three nights: statements, then a sweep that goes on from the point of the last one."""
    random, table = Random(seed), tmp_path / "events"
    made(delta_spark, table, random.choice(KINDS))
    point: LogPoint | None = None
    for night in range(3):
        delta_spark.sql(*statements(random, table, random.randrange(2, 6)))
        aged(table, late=random.randrange(1, 4), days=30 - night)
        delta_spark.forget()
        rows, needed = readable(delta_spark, table), live(table)
        # The commits are of other bytes now that they are older, so that a point is of another log.
        by_log = opened(table).retention.by_log
        assert by_log is not None
        since = point if point is not None and by_log.gap(point) is None else None
        _, _, point = from_log(table, since)
        assert needed <= names(table)
        assert vacuum_lite(delta_spark, table) == set()
        delta_spark.forget()
        after = readable(delta_spark, table)
        assert {version: after.get(version) for version in rows} == rows
        # delta-spark writes vectors of files that it then removes as a whole: no commit names them.
        assert not swept(table)[1] & named_by_log(table)


def named_by_log(table: Path) -> set[str]:
    """Files that a commit adds or removes, their vectors, and change files."""
    found = set[str]()
    for path in (table / "_delta_log").glob("[0-9]*.json"):
        for line in path.read_text(encoding="utf-8").splitlines():
            for kind, body in json.loads(line).items():
                if kind in ("add", "remove", "cdc"):
                    found |= {unquote(body["path"]), *vector_names(body)}
    return found


def live(table: Path) -> set[str]:
    """Data files of the newest version."""
    found = {file.path for unit in opened(table).snapshot().units for file in unit.files}
    return {unquote(path) for path in found}
