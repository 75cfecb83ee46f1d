"""A delete of ours beside another writer of a Delta table: every row that the condition selects goes, or none does."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.breaking import deleting
from tests.formats.delta.hand_made import HandMade, two_days
from tests.formats.delta.runs import commits_of, delete_where, files, optimize
from tests.races.test_delta import ALTERED, CHANGES, FIRST, NEW, REWRITES, Rows, assert_clean_loss, shown
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

LOW = "id < 20"
"""Selects rows of both days."""
ID = 1
"""Where a row that is shown has its id."""


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return two_days(tmp_path / "keptts")


def assert_all_or_none(
    spark: DeltaSpark, made: HandMade, ours_lost: dict[str, object], at_start: dict[str, bytes], truth: Rows
) -> None:
    """Nothing of ours is published or left, and the same run, started again, deletes every row once."""
    assert_clean_loss(made.folder, ours_lost, at_start)
    assert "no row was changed" in str(ours_lost["reason"]) and "started again" in str(ours_lost["reason"])
    assert shown(made.folder) == truth
    version = made.version
    again = delete_where(made.folder, LOW, run_id="ours")
    assert (again.outcome, again.parent_version) == (Outcome.VERIFIED, version), again.reason
    kept = [row for row in truth if row[ID] >= 20]
    assert shown(made.folder) == kept
    assert sorted(row[0] for row in spark.read(made.folder).rows) == sorted(row[ID] for row in kept)
    assert again.metrics.deleted_rows_marked == len(truth) - len(kept)
    once_more = delete_where(made.folder, LOW, run_id="ours")
    assert (once_more.outcome, once_more.committed_version) == (Outcome.VERIFIED, again.committed_version)
    assert delete_where(made.folder, LOW, run_id="next").outcome is Outcome.UNCHANGED


@pytest.mark.few(1)
@pytest.mark.in_turn("vectors")
@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("before", some_extended(["link", "execute", "verify", "publish"], keep=1))
def test_a_change_of_rows_of_one_partition_takes_all_of_it(
    delta_spark: DeltaSpark, made: HandMade, change: str, vectors: str, before: str
) -> None:
    prefix = "spark.databricks.delta"
    conf = {f"{prefix}.{verb}.deletionVectors.persistent": vectors for verb in ("delete", "update", "merge")}
    with deleting(made.folder, LOW, before=before) as ours:
        at_start = {name: data for name, data in files(made.folder).items() if "nk-" not in name}
        with delta_spark.configured(conf):
            delta_spark.sql(CHANGES[change].format(table=named(made.folder), day=FIRST))
        truth = shown(made.folder)
        document = ours.go_on()
    assert_all_or_none(delta_spark, made, document, at_start, truth)


@pytest.mark.few(1)
@pytest.mark.parametrize("rewrite", some_extended(REWRITES, keep=2))
def test_a_rewrite_of_the_files_takes_all_of_it(
    delta_spark: DeltaSpark, lakes: Lakes, made: HandMade, rewrite: str
) -> None:
    with deleting(made.folder, LOW, before="link") as ours:
        at_start = {name: data for name, data in files(made.folder).items() if "nk-" not in name}
        REWRITES[rewrite](delta_spark, lakes, made.folder)
        truth = shown(made.folder)
        document = ours.go_on()
    assert_all_or_none(delta_spark, made, document, at_start, truth)


OURS: dict[str, Callable[[Path], object]] = {
    "packs": lambda table: optimize(table, where="day = '2026-11-01'"),
    "deletes": lambda table: delete_where(table, f"{FIRST} AND id = 5"),
    "packs vectors": lambda table: optimize(table, operation=Operation.PERSIST_DELETES, full=True, where=FIRST),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("other", OURS)
def test_another_run_of_ours_on_one_partition_takes_all_of_it(
    delta_spark: DeltaSpark, made: HandMade, other: str
) -> None:
    made.delete("2026-11-01", range(95, 105))  # a second file of vectors
    with deleting(made.folder, LOW, before="link") as ours:
        version = made.version
        OURS[other](made.folder)
        assert made.version == version + 1
        at_start = files(made.folder)
        truth = shown(made.folder)
        document = ours.go_on()
    assert_all_or_none(delta_spark, made, document, at_start, truth)


@pytest.mark.parametrize("change", some_extended(["a constraint", "a property"], keep=1))
def test_a_change_of_the_table_takes_all_of_it(delta_spark: DeltaSpark, made: HandMade, change: str) -> None:
    at_start = files(made.folder)
    with deleting(made.folder, LOW) as ours:
        delta_spark.sql(ALTERED[change].format(table=named(made.folder)))
        truth = shown(made.folder)
        document = ours.go_on()
    assert_all_or_none(delta_spark, made, document, at_start, truth)


@pytest.mark.few(1)
@pytest.mark.parametrize("before", ["publish", "link"])
def test_an_append_meanwhile_is_no_race(delta_spark: DeltaSpark, made: HandMade, before: str) -> None:
    """All units are committed on the version of the append, whose rows stay."""
    with deleting(made.folder, LOW, before=before) as ours:
        kept = [row for row in shown(made.folder) if row[ID] >= 20]
        delta_spark.sql(f"INSERT INTO {named(made.folder)} VALUES {NEW.replace('1000', '1001')}")
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 9), document["reason"]
    rows = shown(made.folder)
    assert [row for row in rows if row[ID] != 1001] == kept and len(rows) == len(kept) + 1


def test_a_race_in_a_partition_without_matching_rows_is_none(delta_spark: DeltaSpark, made: HandMade) -> None:
    """Its files were read, and nothing of them is changed."""
    second = "day = '2026-11-02' AND id < 20 OR day = '2026-11-01' AND note = 'no such'"
    with deleting(made.folder, second, before="link") as ours:
        delta_spark.sql(CHANGES["DELETE"].format(table=named(made.folder), day=FIRST))
        truth = shown(made.folder)
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert shown(made.folder) == [row for row in truth if not (str(row[0]) == "2026-11-02" and row[ID] < 20)]


@pytest.mark.parametrize("before", ["publish", "link"])
def test_of_two_attempts_of_one_run_one_commits_all(made: HandMade, before: str) -> None:
    truth = shown(made.folder)
    with deleting(made.folder, LOW, before=before) as first, deleting(made.folder, LOW, before=before) as second:
        first.release()
        second.release()
        documents = [first.document(), second.document()]
    assert [(each["outcome"], each["committed_version"]) for each in documents] == [(Outcome.VERIFIED, 8)] * 2
    assert made.version == 8 and not commits_of(made.folder, "ours")
    assert shown(made.folder) == [row for row in truth if row[ID] >= 20]
