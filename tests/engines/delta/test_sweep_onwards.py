"""Delta tables swept and expired for good: every engine reads every retained version as before, and goes on writing."""

import shutil
import signal
import time
import uuid
from pathlib import Path

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.breaking import optimize_and_die
from tests.formats.delta.hand_made import HandMade, two_days
from tests.formats.delta.runs import files, opened
from tests.formats.delta.sweeping import aged, part, plant, readable, run_of, swept, touch
from tests.formats.delta.vacuum import vacuum
from tests.support.processes import child

from nightkeep.errors import EvidenceError, UsageError
from nightkeep.formats.delta.deletes.vectors import vector_file
from nightkeep.model import Operation, Outcome, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import restore

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
SAMPLES = Path(__file__).parents[3] / "samples/delta/shop.db"
TABLES = {path.parent.name: path for path in sorted(GOLDEN.glob("*/table")) if path.parent.name != "variant"} | {
    path.name: path for path in sorted(SAMPLES.iterdir())
}
"""All but a table that is refused."""


def live(table: Path) -> set[str]:
    """Data and vector files of the newest version, by its snapshot."""
    found = [file for unit in opened(table).snapshot().units for file in unit.files]
    vectors = {vector_file(file.vector) for file in found if file.vector}
    return {file.name for file in found} | {name for name in vectors if name is not None}


@pytest.mark.few(8)
@pytest.mark.parametrize("name", TABLES)
def test_every_live_file_of_every_table_survives_and_all_that_is_planted_goes(name: str, tmp_path: Path) -> None:
    table = Path(shutil.copytree(TABLES[name], tmp_path / "table"))
    aged(table, days=400)
    planted = plant(table, part(), f"deletion_vector_{uuid.uuid4()}.bin", "_change_data/cdc-1.parquet", days=400)
    needed, log = live(table), {name for name in files(table) if name.startswith("_delta_log/")}
    told, found = swept(table, SweepMode.DELETE)
    assert told.outcome is Outcome.VERIFIED, told.reason
    assert planted <= found and not found & needed
    assert live(table) == needed and needed | log <= files(table).keys()
    assert not found & files(table).keys()


@pytest.mark.extended
def test_all_engines_read_what_is_retained_and_go_on(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    """Vectors, change files and time travel; then writes, OPTIMIZE and VACUUM on top of it."""
    table = Path(shutil.copytree(GOLDEN / "change_feed/table", tmp_path / "table"))
    aged(table, late=2)
    before = readable(delta_spark, table)
    head = max(before)
    changes = f"SELECT * FROM table_changes_by_path('{table}', {head})"
    feed = delta_spark.sql(changes).ordered()
    lake_rows, lake_feed = lakes.delta_rs_read(table), lakes.load_cdf(table, starting=head)
    told, found = swept(table, SweepMode.DELETE)
    assert told.outcome is Outcome.VERIFIED and found
    delta_spark.forget()
    retained = [
        root.version
        for root in opened(table).retention.roots(Retention(_now(), 7 * DAY_MS))
        if root.version is not None
    ]
    assert {head - 1, head} <= before.keys() <= {*retained}
    assert {version: delta_spark.read(table, version=version) for version in before} == before
    assert delta_spark.sql(changes).ordered().rows[: len(feed.rows)] == feed.rows
    assert lakes.delta_rs_read(table) == lakes.duckdb_read(table) == lake_rows
    assert lakes.load_cdf(table, starting=head, ending=head) == lake_feed
    delta_spark.sql(f"INSERT INTO {named(table)} SELECT * FROM {named(table)}", f"OPTIMIZE {named(table)}")
    vacuum(delta_spark, table)
    assert len(delta_spark.read(table).rows) == 2 * len(lake_rows.rows)
    assert lakes.duckdb_read(table) == delta_spark.read(table)


@pytest.mark.extended
def test_what_comes_back_from_quarantine_is_what_went(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / "vectors/table", tmp_path / "table"))
    aged(table)
    before, rows = files(table), delta_spark.read(table)
    told, found = swept(table, SweepMode.QUARANTINE)
    assert told.outcome is Outcome.VERIFIED and found
    delta_spark.forget()
    vacuum(delta_spark, table)
    # An engine's VACUUM does not look into the quarantine.
    assert restore(opened(table).retention.table_files(), "sweep-1", now_ms=_now()).files == len(found)
    assert before.items() <= files(table).items()
    delta_spark.forget()
    assert delta_spark.read(table) == rows


def test_what_expired_goes_and_the_rest_is_read(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / "vectors/table", tmp_path / "table"))
    aged(table, late=1)
    before, orphans = readable(delta_spark, table), swept(table)[1]
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(_now()), Retention(_now(), 0))
    told = expire_versions(opened(table).retention, order, run_of(), sets=MemorySets, before=lambda expiry: None)
    assert told.outcome is Outcome.VERIFIED and told.counted is not None and told.counted.orphans.files
    delta_spark.forget()
    assert {version: delta_spark.read(table, version=version) for version in before} == before
    assert lakes.delta_rs_read(table) == lakes.duckdb_read(table) == before[max(before)]
    # What no version ever named is for the sweep.
    assert orphans - files(table).keys() == orphans - swept(table)[1]


# ---- what others paid for ----


def test_live_vectors_stay_where_a_full_vacuum_of_delta_rs_deletes_them(lakes: Lakes, tmp_path: Path) -> None:
    """Several vectors in one file, of which some are dead, and one for each file."""
    for name in ("vectors", "vectors_of_partitions", "vectors_of_whole_files"):
        table = Path(shutil.copytree(GOLDEN / name / "table", tmp_path / name))
        aged(table, days=400)
        needed = {file for file in live(table) if file.endswith(".bin")}
        assert needed and needed & {*lakes.delta_rs_vacuum(table, full=True)}
        told, found = swept(table, SweepMode.DELETE)
        assert told.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED) and not found & needed
        assert needed <= files(table).keys()


def test_a_vector_file_lives_while_one_of_its_vectors_does(lakes: Lakes, made: HandMade) -> None:
    before = {path.name for path in made.folder.glob("*.bin")}
    made.delete("2026-11-01", [1])
    shared = {path.name for path in made.folder.glob("*.bin")} - before
    made.delete("2026-11-01", range(2, 12))
    aged(made.folder)
    rows = made.rows()
    swept(made.folder, SweepMode.DELETE)
    assert made.rows() == rows and shared
    assert len(lakes.duckdb_read(made.folder).rows) == len(rows)


def test_files_of_a_writer_at_work_are_not_swept_by_a_short_age(made: HandMade) -> None:
    """iceberg #4194."""
    plant(made.folder, name := part("day=2026-11-01/"), days=0.1)
    with pytest.raises(UsageError, match="168"):
        swept(made.folder, SweepMode.DELETE, older_than_ms=DAY_MS)
    assert (made.folder / name).exists()
    assert name in swept(made.folder, SweepMode.DELETE, older_than_ms=0, below_floor=True)[1]


def test_a_table_whose_live_files_are_missing_is_not_swept(made: HandMade) -> None:
    plant(made.folder, name := part("day=2026-11-01/"))
    aged(made.folder)
    (made.folder / sorted(live(made.folder))[-1]).unlink()
    with pytest.raises(EvidenceError, match="1 missing"):
        swept(made.folder, SweepMode.DELETE)
    assert (made.folder / name).exists()


def test_a_table_below_this_one_is_left_alone(made: HandMade) -> None:
    inner = two_days(made.folder / "day=2026-11-01/inner").folder
    other = plant(made.folder, "day=2026-11-02/ice/metadata/v1.metadata.json", "day=2026-11-02/ice/a.parquet")
    plant(made.folder, f"day=2026-11-01/inner/{part()}", f"day=2026-11-01/inner/deletion_vector_{uuid.uuid4()}.bin")
    mine = plant(made.folder, part("day=2026-11-01/"))
    aged(made.folder)
    before = files(inner)
    assert swept(made.folder, SweepMode.DELETE)[1] == mine
    assert files(inner) == before and other <= files(made.folder).keys()


def test_a_commit_during_the_sweep_survives(made: HandMade, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files older than the cutoff, as those of a writer that took days: committed once the candidates are listed."""
    late = made.written("2026-11-01", range(5000, 5010))
    aged(made.folder)
    mine, listed = plant(made.folder, part("day=2026-11-01/")), MemorySets.list

    def listing(self: MemorySets, table_files: object) -> None:
        listed(self, table_files)  # type: ignore[arg-type]
        made.commit("WRITE", *late)

    monkeypatch.setattr(MemorySets, "list", listing)
    before = len(made.rows())
    assert swept(made.folder, SweepMode.DELETE)[1] == mine
    assert len(made.rows()) == before + 10


# ---- leftovers ----


@pytest.mark.few(1)
@pytest.mark.parametrize("at", [3, 9, 15])
def test_what_a_killed_run_of_ours_left_is_found_once_it_is_old(at: int, made: HandMade) -> None:
    before = files(made.folder)
    with child(optimize_and_die, made.folder, "night-1", at) as process:
        assert process.end() == -signal.SIGKILL
    left = files(made.folder).keys() - before.keys()
    assert left and not swept(made.folder)[1] & left
    for name in left:
        touch(made.folder / name, _now() - 30 * DAY_MS)
    rows = made.rows()
    found = swept(made.folder, SweepMode.DELETE, of_run="night-1")[1]
    # What was committed is the table's, as is the commit itself.
    token = run_token("night-1", Operation.OPTIMIZE)
    assert found == {name for name in left if token in name} - live(made.folder)
    assert left - found <= live(made.folder) | {name for name in left if name.endswith("8.json")}
    assert made.rows() == rows


def test_what_a_failed_write_of_delta_spark_left_is_found(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "table"
    delta_spark.sql(f"CREATE TABLE {named(table)} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    delta_spark.sql(f"INSERT INTO {named(table)} VALUES (1, 'a b')")
    delta_spark.sql(f"ALTER TABLE {named(table)} ADD CONSTRAINT small CHECK (id < 100)")
    before = files(table)
    with pytest.raises(EngineError):
        # Of four tasks on two cores the last one fails: it starts when two others have written all of theirs.
        delta_spark.sql(f"INSERT INTO {named(table)} SELECT IF(id = 199, id, id % 50), 'a b' FROM range(0, 200, 1, 4)")
    left = {name for name in files(table).keys() - before.keys() if not Path(name).name.startswith(".")}
    aged(table)
    assert left and swept(table)[1] == left


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return two_days(tmp_path / "events")


def _now() -> int:
    return int(time.time() * 1000)
