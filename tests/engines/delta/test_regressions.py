"""What others paid for, case by case: each test is named after what must not happen to a table of ours."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.breaking import optimize_and_pause
from tests.formats.delta.hand_made import HandMade, two_days
from tests.formats.delta.lake import Lake, request
from tests.formats.delta.runs import files, leftovers, opened, optimize
from tests.support.extended import some_extended
from tests.support.processes import child

from nightkeep.checking.check import check
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.optimize import file_bounds
from nightkeep.kernels.skipping import queries_of, skipped_share
from nightkeep.model import Address, Clustering, Curve, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
DAYS = ("2026-11-01", "2026-11-02")


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return two_days(tmp_path / "events")


# Others that began before our commit, and commit after it


HELD = {
    "OPTIMIZE": "OPTIMIZE {table}",
    "ZORDER": "OPTIMIZE {table} ZORDER BY (id)",
    "DELETE": "DELETE FROM {table} WHERE id = 75",
    "UPDATE": "UPDATE {table} SET note = 'changed' WHERE id = 75",
    "MERGE": """MERGE INTO {table} t USING (SELECT 75L AS id) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET note = 'merged'""",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("statement", some_extended(HELD, keep=2))
def test_what_delta_spark_began_before_our_commit_is_not_built_on_files_that_are_gone(
    delta_spark: DeltaSpark, made: HandMade, statement: str
) -> None:
    """delta #326, PR #7331: it loses the race or begins anew; no row is there twice, no change is half there."""
    truth = made.rows()
    with delta_spark.held(HELD[statement].format(table=named(made.folder))) as running:
        assert optimize(made.folder).outcome is Outcome.VERIFIED
        assert (made.version, made.rows()) == (8, truth)
    try:
        running.result()
    except EngineError as lost:
        assert lost.condition.startswith("DELTA_CONCURRENT_")
        assert made.version == 8
    found = made.rows()
    if statement in ("OPTIMIZE", "ZORDER") or made.version == 8:
        assert found == truth
    else:
        assert {row[:2] for row in truth} >= {row[:2] for row in found}
        assert {row[1] for row in set(truth) ^ set(found)} == {75}
    assert len(delta_spark.read(made.folder).rows) == len(found)


def test_an_append_that_delta_spark_began_before_our_commit_is_kept(delta_spark: DeltaSpark, made: HandMade) -> None:
    rows = len(made.rows())
    with delta_spark.held(f"INSERT INTO {named(made.folder)} VALUES (1, 0.5, 'new', DATE '2026-11-01')") as running:
        assert optimize(made.folder).outcome is Outcome.VERIFIED
    running.result()
    assert len(made.rows()) == len(delta_spark.read(made.folder).rows) == rows + 1


@pytest.mark.extended
def test_rows_that_a_stale_optimize_of_delta_rs_doubles_are_reported_by_the_check(
    spark: SparkSession, lakes: Lakes, made: HandMade
) -> None:
    """delta-rs PR #3982: it looks past removes that change no data, so our commit cannot stop one that is running."""
    rows, handle = len(made.rows()), lakes.open(made.folder)
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    lakes.delta_rs_optimize(handle)
    assert len(made.rows()) > rows
    address = Address("delta", str(made.folder), "events")
    assert check(CheckRequest(address, version=8), spark=spark).status is CheckStatus.PASSED
    report = check(CheckRequest(address, version=9), spark=spark)
    assert report.status is CheckStatus.FAILED
    # A second copy of a row is found by the number of rows; its key is neither missing nor extra.
    assert "the number of rows is the same" in {r.name for r in report.results if r.status is CheckStatus.FAILED}
    found = [each.difference for each in report.differences]
    assert sum(each.extra_count for each in found) == len(made.rows()) - rows
    assert not any(each.missing_count for each in found)


@pytest.mark.extended
def test_numbers_of_an_identity_column_given_away_meanwhile_are_no_conflict(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    """An INSERT moves the high-water mark, which is in the table's metadata."""
    table = tmp_path / "t"
    columns = "key BIGINT GENERATED ALWAYS AS IDENTITY, note STRING"
    insert = f"INSERT INTO {named(table)} (note) SELECT /*+ COALESCE(1) */ * FROM VALUES"
    delta_spark.sql(f"CREATE TABLE {named(table)} ({columns}) USING delta", f"{insert} ('a')", f"{insert} ('b')")
    with child(optimize_and_pause, table, "ours", "link", {}) as ours:
        assert ours.hear() == "link"
        delta_spark.sql(f"{insert} ('c')")
        ours.say("go")
        document = ours.hear()
    assert (document["outcome"], document["parent_version"]) == (Outcome.VERIFIED, 3), document["reason"]
    delta_spark.sql(f"{insert} ('d')")
    assert delta_spark.read(table).column("key") == (1, 2, 3, 4)


# Checkpoints and vacuums of others


def told(snapshot: DeltaSnapshot) -> list[tuple[Any, ...]]:
    """All that a later commit of ours needs of a file, and the table's row id mark."""
    raws = [file.raw for unit in snapshot.units for file in unit.files]
    keys = ("path", "deletionVector", "tags", "baseRowId", "defaultRowCommitVersion", "size")
    found = [tuple(str(raw.get(key) or None) for key in keys) for raw in raws]
    return [*sorted(found), (snapshot.row_id_high_water_mark,)]


@pytest.mark.few(1)
@pytest.mark.in_turn("row_ids")
@pytest.mark.parametrize("row_ids", [True, False], ids=["row ids", "no row ids"])
@pytest.mark.parametrize("writer", ["delta-spark", "delta-rs"])
def test_a_checkpoint_keeps_what_we_stated_of_files(
    writer: str, row_ids: bool, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    """Trino #31252 dropped the files of vectors; commits before the checkpoint are gone here, as after a clean-up."""
    made = HandMade(tmp_path / "events", row_ids=row_ids)
    for day in DAYS:
        for start in (0, 40, 80):
            made.append(day, range(start, start + 40))
        for number in (5, 45, 85):
            made.delete(day, [number])
    everything = {"full": True, "commit_size": "1B"}
    first = optimize(made.folder, operation=Operation.PERSIST_DELETES, where=f"day = '{DAYS[0]}'", **everything)
    second = optimize(made.folder, where=f"day = '{DAYS[1]}'", clustering={"zorder": ["id", "price"]}, **everything)
    assert (first.outcome, second.outcome) == (Outcome.VERIFIED, Outcome.VERIFIED), (first.reason, second.reason)
    truth, before = delta_spark.read(made.folder), told(opened(made.folder).snapshot())
    assert "'deletionVector'" not in str(before) and "nightkeep.clustering" in str(before)
    if writer == "delta-spark":
        delta_spark.checkpoint(made.folder)
    else:
        lakes.delta_rs_checkpoint(made.folder)
    version = made.version
    for older in range(version):
        (made.folder / f"_delta_log/{older:020d}.json").unlink()
    delta_spark.forget()
    snapshot = opened(made.folder).snapshot()
    assert (snapshot.version, told(snapshot)) == (version, before)
    assert lakes.duckdb_read(made.folder) == lakes.delta_rs_read(made.folder) == truth
    again = optimize(made.folder, where=f"day = '{DAYS[1]}'", clustering={"zorder": ["id", "price"]})
    assert again.outcome is Outcome.UNCHANGED, again.reason
    assert optimize(made.folder, max_deleted_ratio=0).outcome is Outcome.VERIFIED
    assert delta_spark.read(made.folder) == truth


@pytest.mark.extended
@pytest.mark.parametrize("writer", ["delta-spark", "delta-rs"])
def test_optimizing_after_every_checkpoint_multiplies_no_row(
    writer: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    """delta-rs #3047: 12,000 rows of 4,000."""
    made = HandMade(tmp_path / "events")
    for night in range(4):
        for start in (0, 10):
            made.append(DAYS[0], range(100 * night + start, 100 * night + start + 10))
        made.delete(DAYS[0], [100 * night + 3])
        if writer == "delta-spark":
            delta_spark.checkpoint(made.folder)
        else:
            lakes.delta_rs_checkpoint(made.folder)
        assert optimize(made.folder).outcome is Outcome.VERIFIED
        assert len(lakes.delta_rs_read(made.folder).rows) == len(made.rows()) == 19 * (night + 1)
    assert len(delta_spark.read(made.folder).rows) == len(lakes.duckdb_read(made.folder).rows) == 76


def test_a_vector_that_a_full_vacuum_of_delta_rs_deleted_ends_the_run_by_its_name(lakes: Lakes, made: HandMade) -> None:
    """Rows that were deleted are not shown again, nor is anything written on top."""
    (vectors,) = made.folder.glob("deletion_vector_*.bin")
    lakes.delta_rs_vacuum(made.folder, retention_hours=0, dry_run=False, full=True)
    assert not vectors.exists()
    before, version = files(made.folder), made.version
    document = optimize(made.folder)
    assert document.outcome is Outcome.FAILED and vectors.name in str(document.reason)
    assert made.version == version
    assert not leftovers(made.folder, before)


FAR = "\U00020000 \U0010ffff"
"""Characters that delta-rs and DuckDB misread where JSON escapes them."""


def test_characters_beyond_the_first_planes_are_not_misread(lakes: Lakes, tmp_path: Path) -> None:
    """As bounds: files that hold a value would be skipped. As values of a partition: rows would be in another one."""
    found = Lake(tmp_path / "t", pa.schema([("id", pa.int64()), ("text", pa.string()), ("p", pa.string())]), ["p"])
    for number in range(2):
        found.append(pa.table({"id": [number, 2], "text": ["a", FAR]}), partition={"p": FAR})
    assert found.run(request()).units
    for read in (lakes.delta_rs_read, lakes.duckdb_read):
        assert read(found.folder, where=f"text >= '{FAR}'").column("id") == (2, 2)
        assert read(found.folder, where=f"p = '{FAR}'").column("p") == (FAR,) * 4


# Clustering by columns that are not alike


def text(numbers: Any) -> list[str]:
    return [f"https://example.org/products/{number:09}" for number in numbers]


UNLIKE: dict[str, tuple[pa.DataType, pa.DataType, int, int]] = {
    "int32 and int64": (pa.int32(), pa.int64(), 1 << 30, 1 << 40),
    "int64 of two ranges": (pa.int64(), pa.int64(), 1000, 10**9),
    "float and int64": (pa.float64(), pa.int64(), 1 << 20, 1 << 20),
    "strings of one prefix and int64": (pa.string(), pa.int64(), 10**9, 10**9),
}


@pytest.mark.parametrize("columns", UNLIKE)
def test_no_column_is_lost_beside_another_of_another_type_or_range(columns: str, lakes: Lakes, tmp_path: Path) -> None:
    """delta-rs interleaves bytes of values, not ranks: one column of each of these pairs then skips nothing."""
    one, other, *spans = UNLIKE[columns]
    rng = np.random.default_rng(0)
    numbers = [rng.integers(0, span, 60_000) for span in spans]
    held = [
        pa.array(text(each)) if kind == pa.string() else pa.array(each).cast(kind)
        for kind, each in zip((one, other), numbers, strict=True)
    ]
    found = Lake(tmp_path / "ours", pa.schema([("a", one), ("b", other)]))
    found.append(pa.table(dict(zip("ab", held, strict=True))), files=2)
    theirs = Path(shutil.copytree(found.folder, tmp_path / "theirs"))
    size = sum(file.bytes for file in found.files) // 40
    found.run(request(clustering=Clustering(("a", "b"), Curve.Z), target_bytes=size))
    lakes.delta_rs_z_order(theirs, ["a", "b"], target_size=size, codec="SNAPPY")
    assert min(skipping(found.snapshot)) > 0.6
    assert min(skipping(opened(theirs).snapshot())) < 0.1


def skipping(snapshot: DeltaSnapshot) -> list[float]:
    held = [file for unit in snapshot.units for file in unit.files]
    assert len(held) >= 30
    bounds = file_bounds(snapshot, held, [("a",), ("b",)])
    return [skipped_share(each, queries_of(each)) for each in bounds.values()]
