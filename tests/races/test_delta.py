"""Two processes on one table, the other one always committing while ours is between two stages.

Nothing is lost, nothing is there twice, and whoever could not publish has removed what it wrote.
"""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.breaking import breaking, optimize_and_die, waiting
from tests.formats.delta.hand_made import HandMade, rows_of, two_days
from tests.formats.delta.runs import commits_of, files, leftovers, optimize
from tests.support.extended import some_extended
from tests.support.faulty_store import Fuse
from tests.support.processes import child

from nightkeep.model import Outcome

Document = dict[str, Any]
Rows = list[tuple[Any, ...]]
DAYS = ("2026-11-01", "2026-11-02")
FIRST, SECOND = (f"day = DATE '{day}'" for day in DAYS)
NEW = "(1000, 0.5, 'new', DATE '2026-11-01')"


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return two_days(tmp_path / "events")


def shown(table: Path) -> Rows:
    """Read by neither engine nor us: the log is replayed here, and vectors are decoded."""
    return HandMade.at(table).rows()


def assert_clean_loss(table: Path, document: Document, before: dict[str, bytes]) -> None:
    """Conflicted, nothing of ours published and nothing of ours left."""
    assert document["outcome"] == Outcome.CONFLICTED, document["reason"]
    assert document["committed_version"] is None
    assert all(unit["outcome"] == Outcome.CONFLICTED and unit["reason"] for unit in document["units"])
    assert not leftovers(table, before)


def outcomes(document: Document) -> dict[str, str]:
    return {unit["partition"]: unit["outcome"] for unit in document["units"]}


at_every_stage = pytest.mark.parametrize("before", ["execute", "publish", "link"])


@pytest.mark.few(1)
@at_every_stage
def test_an_append_meanwhile_is_kept(delta_spark: DeltaSpark, made: HandMade, before: str) -> None:
    with waiting(made.folder, before=before) as ours:
        delta_spark.sql(f"INSERT INTO {named(made.folder)} VALUES {NEW}")
        truth = shown(made.folder)
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED
    assert (document["base_version"], document["parent_version"], document["committed_version"]) == (7, 8, 9)
    assert shown(made.folder) == truth
    assert len(delta_spark.read(made.folder).rows) == len(truth)


def test_an_append_by_delta_rs_meanwhile_is_kept(lakes: Lakes, made: HandMade) -> None:
    with waiting(made.folder) as ours:
        days = pa.array(["2026-11-01"] * 3).cast(pa.date32())
        lakes.delta_rs_append(made.folder, rows_of([1000, 1001, 1002]).append_column("day", days))
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 9)
    assert len(lakes.delta_rs_read(made.folder).rows) == 183


CHANGES = {
    "DELETE": "DELETE FROM {table} WHERE {day} AND id = 5",
    "UPDATE": "UPDATE {table} SET note = 'changed' WHERE {day} AND id = 5",
    "MERGE": """MERGE INTO {table} t USING (SELECT 5L AS id UNION ALL SELECT 77777L) s ON t.id = s.id AND {day}
        WHEN MATCHED THEN UPDATE SET note = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, price, note, day) VALUES (s.id, 0.5, 'merged', DATE '2026-11-09')""",
}


@pytest.mark.few(1)
@pytest.mark.in_turn("vectors")
@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_rows_takes_its_partition_from_us(
    delta_spark: DeltaSpark, made: HandMade, change: str, vectors: str
) -> None:
    """By a new vector, and by files written anew."""
    prefix = "spark.databricks.delta"
    conf = {f"{prefix}.{verb}.deletionVectors.persistent": vectors for verb in ("delete", "update", "merge")}
    with waiting(made.folder, before="link") as ours:
        with delta_spark.configured(conf):
            delta_spark.sql(CHANGES[change].format(table=named(made.folder), day=FIRST))
        truth = shown(made.folder)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, 9)
    assert outcomes(document) == {"day=2026-11-01": "conflicted", "day=2026-11-02": "verified"}
    assert shown(made.folder) == truth
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    assert shown(made.folder) == truth


REWRITES: dict[str, Callable[[DeltaSpark, Lakes, Path], object]] = {
    "delta-spark packs": lambda spark, lakes, table: spark.sql(f"OPTIMIZE {named(table)}"),
    "delta-spark clusters": lambda spark, lakes, table: spark.sql(f"OPTIMIZE {named(table)} ZORDER BY (id)"),
    "delta-spark purges": lambda spark, lakes, table: spark.sql(f"REORG TABLE {named(table)} APPLY (PURGE)"),
    "delta-rs packs": lambda spark, lakes, table: lakes.delta_rs_optimize(table),
    "delta-rs clusters": lambda spark, lakes, table: lakes.delta_rs_z_order(table, ["id"]),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rewrite", "before"),
    some_extended([*((name, "link") for name in REWRITES), ("delta-spark packs", "publish")], keep=3),
)
def test_a_rewrite_of_our_inputs_wins(
    delta_spark: DeltaSpark, lakes: Lakes, made: HandMade, rewrite: str, before: str
) -> None:
    """Though its removes say dataChange = false: delta-rs looks past those and doubles every row."""
    truth = shown(made.folder)
    with waiting(made.folder, before=before) as ours:
        at_gate = {name: data for name, data in files(made.folder).items() if "nk-" not in name}
        REWRITES[rewrite](delta_spark, lakes, made.folder)
        document = ours.go_on()
    rewritten = {"day=2026-11-01", *(["day=2026-11-02"] if "purges" not in rewrite else [])}
    assert {day for day, outcome in outcomes(document).items() if outcome == "conflicted"} == rewritten
    if len(rewritten) == len(DAYS):
        assert_clean_loss(made.folder, document, at_gate)
    assert shown(made.folder) == truth


def test_a_rewrite_of_another_partition_is_no_conflict(delta_spark: DeltaSpark, made: HandMade) -> None:
    truth = shown(made.folder)
    with waiting(made.folder, where="day = '2026-11-01'") as ours:
        delta_spark.sql(f"OPTIMIZE {named(made.folder)} WHERE {SECOND} ZORDER BY (id)")
        document = ours.go_on()
    assert (document["outcome"], document["parent_version"], document["committed_version"]) == ("verified", 8, 9)
    assert shown(made.folder) == truth


@pytest.mark.parametrize("other", ["ours", "another run"])
@pytest.mark.parametrize("before", ["publish", "link"])
def test_of_two_of_us_one_commits(made: HandMade, before: str, other: str) -> None:
    """Two runs, and two attempts of one run whose scheduler took the first for dead."""
    truth, at_start = shown(made.folder), files(made.folder)
    with waiting(made.folder, before=before) as first, waiting(made.folder, before=before, run_id=other) as second:
        first.release()
        second.release()
        documents = [first.document(), second.document()]
    # An attempt that lost to another one of its run tells of what the run published.
    lost = (Outcome.VERIFIED, 8) if other == "ours" else (Outcome.CONFLICTED, 0)
    found = sorted((document["outcome"], document["committed_version"] or 0) for document in documents)
    assert found == [lost, (Outcome.VERIFIED, 8)]
    assert made.version == 8
    assert not leftovers(made.folder, at_start)
    assert shown(made.folder) == truth


@pytest.mark.parametrize("before", ["publish", "link"])
def test_of_two_that_cluster_a_table_by_its_own_columns_one_commits(tmp_path: Path, before: str) -> None:
    made = HandMade(tmp_path / "events", row_ids=True)
    for start in (0, 40, 80):
        made.append(DAYS[0], range(start, start + 40))
    made.cluster_by("price")
    truth, at_start = shown(made.folder), files(made.folder)
    with waiting(made.folder, before=before) as first, waiting(made.folder, before=before, run_id="other") as second:
        first.release()
        second.release()
        documents = [first.document(), second.document()]
    assert sorted(document["outcome"] for document in documents) == [Outcome.CONFLICTED, Outcome.VERIFIED]
    assert made.version == 4
    assert {add["clusteringProvider"] for add in made.live().values()} == {"nightkeep"}
    assert not leftovers(made.folder, at_start)
    assert shown(made.folder) == truth


ALTERED = {
    "a property": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')",
    "a new column": "ALTER TABLE {table} ADD COLUMN (colour STRING)",
    "a constraint": "ALTER TABLE {table} ADD CONSTRAINT positive CHECK (price >= 0)",
    "a feature": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
    "column mapping": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("change", some_extended(ALTERED, keep=2))
def test_a_change_of_the_table_wins(delta_spark: DeltaSpark, made: HandMade, change: str) -> None:
    at_start = files(made.folder)
    with waiting(made.folder) as ours:
        delta_spark.sql(ALTERED[change].format(table=named(made.folder)))
        document = ours.go_on()
    assert_clean_loss(made.folder, document, at_start)
    assert "changed between versions" in document["units"][0]["reason"]
    truth = delta_spark.read(made.folder)
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    assert delta_spark.read(made.folder) == truth


def test_a_checkpoint_meanwhile_changes_nothing(delta_spark: DeltaSpark, made: HandMade) -> None:
    """What was planned on was read from commits, what is compared with it from a checkpoint."""
    truth = shown(made.folder)
    with waiting(made.folder) as ours:
        delta_spark.sql(f"INSERT INTO {named(made.folder)} VALUES {NEW}")
        delta_spark.checkpoint(made.folder)
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 9), document["reason"]
    assert len(shown(made.folder)) == len(truth) + 1


def test_an_emptied_table_is_not_filled_by_us(delta_spark: DeltaSpark, made: HandMade) -> None:
    before = files(made.folder)
    with waiting(made.folder) as ours:
        delta_spark.sql(f"DELETE FROM {named(made.folder)}")
        document = ours.go_on()
    assert_clean_loss(made.folder, document, before)
    assert not delta_spark.read(made.folder).rows


def test_a_delete_of_delta_rs_that_began_before_ours_fails(lakes: Lakes, made: HandMade) -> None:
    """It sees that we added files to what it read, though it looks past our removes."""
    truth, handle = made.rows(), lakes.open(made.folder)
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    with pytest.raises(EngineError):
        lakes.delta_rs_delete(handle, "id = 5")
    assert made.rows() == truth


def test_a_retry_after_a_kill_behind_the_commit_finds_it_below_newer_ones(
    delta_spark: DeltaSpark, made: HandMade, tmp_path: Path
) -> None:
    fuse = Fuse()
    with breaking(fuse):
        optimize(Path(shutil.copytree(made.folder, tmp_path / "clean")))
    linked = next(n for n, p in enumerate(fuse.passed, start=1) if (p.moment.value, p.step) == ("after", "link"))
    with child(optimize_and_die, made.folder, "ours", linked) as process:
        assert process.end() == -signal.SIGKILL
    delta_spark.sql(f"INSERT INTO {named(made.folder)} VALUES {NEW}")
    truth = shown(made.folder)
    document = optimize(made.folder, run_id="ours")
    assert (document.outcome, document.parent_version, document.committed_version) == (Outcome.VERIFIED, 7, 8)
    assert commits_of(made.folder, "ours") == [8]
    assert shown(made.folder) == truth
