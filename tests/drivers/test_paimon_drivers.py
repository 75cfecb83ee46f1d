"""The oracles answer, and agree with an obvious model: what other tests are judged by is judged here."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples.make_samples import SAMPLES as SAMPLES_IN_RECIPE
from tests.drivers.history import Commit, History, expected, play, rows_by_key
from tests.drivers.json_lines import EngineError, EngineStopped, JsonLines
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, RandomRows, Scan, Writer
from tests.drivers.pypaimon_oracle import PyPaimon, cut_to_micros
from tests.drivers.random_history import random_history
from tests.drivers.toolchain import ToolMissing, program

SAMPLES = Path(__file__).parents[2] / "samples" / "paimon" / "shop.db"
MERGED = Scan(options=MERGE_ON_READ)
ORDERS = Layout(
    columns=[("id", "BIGINT NOT NULL"), ("note", "STRING")],
    primary_keys=["id"],
    options={"bucket": "1", "deletion-vectors.enabled": "true"},
)


@pytest.fixture
def orders(paimon_java: PaimonJava, tmp_path: Path) -> Path:
    table = tmp_path / "shop.db" / "orders"
    paimon_java.create(table, ORDERS)
    return table


def upserts(*numbers: int, note: str) -> list[list[Any]]:
    return [["+I", number, note] for number in numbers]


# The process


def test_a_failure_of_the_engine_is_an_error_and_the_engine_lives_on(paimon_java: PaimonJava, orders: Path) -> None:
    with pytest.raises(EngineError, match="zz") as caught:
        paimon_java.read(orders, Scan(projection=["zz"]))
    assert caught.value.kind == "java.lang.IllegalArgumentException"
    assert paimon_java.read(orders).rows == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "reason"), [("import time; time.sleep(60)", "no reply"), ("raise SystemExit('gone')", "gone")]
)
def test_a_silent_or_dead_engine_is_reported_in_bounded_time(program: str, reason: str, tmp_path: Path) -> None:
    engine = JsonLines([sys.executable, "-c", program], tmp_path / "log", timeout=0.5)
    with pytest.raises(EngineStopped, match=reason):
        engine.request("ping", {})
        engine.request("ping", {})
    engine.stop()


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissing, match=r"mvn: not on PATH.*maven"):
        program("mvn", "maven")


# Java's verbs


def test_an_upgrade_leaves_files_and_vectors_as_the_format_states(paimon_java: PaimonJava, orders: Path) -> None:
    paimon_java.write(orders, upserts(*range(500), note="base"))
    paimon_java.compact(orders, Compaction(full=True))
    paimon_java.write(orders, upserts(3, 7, 900, note="new"))
    assert len(paimon_java.read(orders).rows) == 500
    done = paimon_java.compact(orders)
    base, lifted = sorted(paimon_java.files(orders), key=lambda file: -file.level)
    assert (base.level, lifted.level, lifted.min_key, lifted.max_key) == (5, 4, [3], [900])
    assert lifted.value_stats["note"] == ["new", "new", 0]
    (index,) = paimon_java.vectors(orders)
    assert index.files[base.name]["positions"] == [3, 7]
    snapshot = paimon_java.snapshot(orders)
    assert snapshot is not None
    assert (snapshot["id"], snapshot["commitKind"], done.snapshot) == (4, "COMPACT", 4)
    assert done.commit_seconds is not None
    assert done.cpu_seconds > 0
    assert paimon_java.vectors(orders, snapshot=3) == ()


def test_a_prepared_compaction_is_invisible_until_committed(paimon_java: PaimonJava, orders: Path) -> None:
    paimon_java.write(orders, upserts(1, 2, note="a"))
    dropped, kept = paimon_java.prepare_compact(orders), paimon_java.prepare_compact(orders)
    assert dropped.handle is not None
    assert kept.handle is not None
    paimon_java.abort_prepared(dropped.handle)
    assert [s["commitKind"] for s in paimon_java.snapshots(orders)] == ["APPEND"]
    assert paimon_java.commit_prepared(kept.handle).snapshot == 2
    with pytest.raises(EngineError, match="expected a prepared compaction"):
        paimon_java.commit_prepared(kept.handle)


def test_javas_own_committer_loses_deletes_when_two_compactions_meet(paimon_java: PaimonJava, orders: Path) -> None:
    """Why the commit needs a guard of its own: a vector is accepted for a file that is gone."""
    paimon_java.write(orders, upserts(*range(500), note="base"))
    paimon_java.compact(orders, Compaction(full=True))
    paimon_java.write(orders, upserts(*range(0, 500, 2), note="first"))
    paimon_java.compact(orders)
    full = paimon_java.prepare_compact(orders, Compaction(full=True))
    paimon_java.write(orders, upserts(*range(0, 500, 25), note="second"))
    minor = paimon_java.prepare_compact(orders)
    assert full.handle is not None
    assert minor.handle is not None
    paimon_java.commit_prepared(full.handle)
    paimon_java.commit_prepared(minor.handle)
    assert len(paimon_java.read(orders).rows) == 520


def test_a_compaction_of_javas_picks_a_second_time_when_it_commits(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """A gentle table counts both picks: Java lifts L0 at the second, which single_pick leaves out."""
    gentle = {"lookup-compact": "gentle", "num-sorted-run.compaction-trigger": "2"}
    layout = Layout(ORDERS.columns, ["id"], options={**ORDERS.options, **gentle, "lookup-compact.max-interval": "2"})
    levels = []
    for single_pick in (True, False):
        table = tmp_path / "shop.db" / f"t{single_pick}"
        paimon_java.create(table, layout)
        paimon_java.write(table, upserts(1, 2, note="a"))
        paimon_java.compact(table, Compaction(single_pick=single_pick))
        levels.append([file.level for file in paimon_java.files(table)])
    assert levels == [[0], [2]]


def test_upkeep_verbs(paimon_java: PaimonJava, orders: Path) -> None:
    for note in "abc":
        paimon_java.write(orders, upserts(1, 2, note=note), Writer(user="me", identifier=ord(note)))
    assert [s["commitIdentifier"] for s in paimon_java.snapshots(orders)] == [97, 98, 99]
    paimon_java.create_tag(orders, "kept", snapshot=1)
    assert paimon_java.compact_manifests(orders) == 4
    assert paimon_java.expire(orders) == 3
    assert [s["id"] for s in paimon_java.snapshots(orders)] == [4]
    assert paimon_java.read(orders, Scan(options={"scan.tag-name": "kept", **MERGE_ON_READ})).rows[0] == (1, "a")
    paimon_java.delete_tag(orders, "kept")
    stray = orders / "bucket-0" / "data-stray-0.parquet"
    stray.touch()
    assert paimon_java.delete_orphans(orders, older_than_millis=2**52)["files"] == [str(stray)]
    assert stray.exists()
    assert paimon_java.truncate(orders) == 5
    assert paimon_java.read(orders, MERGED).rows == ()


def test_random_rows_are_the_same_for_the_same_seed(paimon_java: PaimonJava, orders: Path) -> None:
    paimon_java.write_random(orders, RandomRows(rows=3000, seed=1, sequential=True, step=2))
    paimon_java.write_random(orders, RandomRows(rows=500, seed=2, keyspace=6000, delete_every=10))
    copy = orders.with_name("copy")
    shutil.copytree(orders, copy)
    before = paimon_java.read_digest(copy, MERGED, threads=2)
    paimon_java.compact(copy, Compaction(threads=2))
    after = paimon_java.read_digest(copy)
    assert (before.rows, before.digest) == (after.rows, after.digest)
    assert (before.raw_splits, after.raw_splits) == (0, 1)
    assert 3000 < after.rows < 3500
    paimon_java.write(copy, upserts(0, note="changed"))
    assert paimon_java.read_digest(copy, MERGED).digest != after.digest


# Histories


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(8))
def test_engines_agree_with_the_model_of_a_history(
    seed: int, paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    history = random_history(seed)
    table = tmp_path / "shop.db" / "t"
    paimon_java.create(table, history.layout)
    play(paimon_java, table, history.steps)
    wanted = expected(history)
    assert rows_by_key(history, paimon_java.read(table, MERGED).rows) == wanted, str(history)
    if "deletion-vectors.bitmap64" not in history.layout.options:
        cut = {key: cut_to_micros(row) for key, row in wanted.items()}
        assert rows_by_key(history, map(cut_to_micros, pypaimon.read(table, MERGED).rows)) == cut, str(history)
    paimon_java.compact(table, Compaction(full=True))
    assert rows_by_key(history, paimon_java.read(table).rows) == wanted, str(history)


def test_a_history_is_its_seed() -> None:
    assert random_history(5) == random_history(5)
    assert len({str(random_history(seed)) for seed in range(20)}) == 20


def test_the_model_orders_rows_by_sequence_field_and_then_by_time() -> None:
    layout = Layout([("k", "INT NOT NULL"), ("s", "INT"), ("v", "STRING")], ["k"], options={"sequence.field": "s"})
    rows: list[tuple[Any, ...]] = [
        ("+I", 1, 5, "kept"),
        ("+U", 1, 4, "late"),
        ("+U", 1, None, "undated"),
        ("+I", 2, 1, "first"),
    ]
    rows += [("+U", 2, 1, "tie: last wins"), ("+I", 3, 7, "gone"), ("-D", 3, 7, None), ("+I", 3, 6, "late")]
    history = History(0, layout, ())
    assert expected(history, [Commit(tuple(rows))]) == {(1,): (1, 5, "kept"), (2,): (2, 1, "tie: last wins")}


# Samples


@pytest.mark.parametrize(
    ("name", "l0_files", "changed_by_compaction"),
    [
        ("orders", 18, True),
        ("customers", 4, True),
        ("positions", 8, True),
        ("stock", 2, True),
        ("events_input", 2, True),
        ("untouched", 0, False),
    ],
)
def test_a_copied_sample_is_what_the_readme_states(
    name: str, l0_files: int, changed_by_compaction: bool, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    table = tmp_path / "shop.db" / name
    shutil.copytree(SAMPLES / name, table)
    files = paimon_java.files(table)
    assert sum(file.level == 0 for file in files) == l0_files
    assert {file.external_path for file in files} == {None}
    merged = paimon_java.read_digest(table, MERGED)
    before = paimon_java.snapshots(table)[-1]["id"]
    assert (paimon_java.compact(table).snapshot != before) == changed_by_compaction
    assert paimon_java.read_digest(table).digest == merged.digest


def test_samples_are_small() -> None:
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 2_000_000


@pytest.mark.few(4)
@pytest.mark.parametrize("sample", SAMPLES_IN_RECIPE, ids=lambda sample: str(sample.__name__))
def test_the_recipe_makes_the_rows_that_are_checked_in(
    sample: Callable[[PaimonJava, Path], None], paimon_java: PaimonJava, tmp_path: Path
) -> None:
    made = tmp_path / "shop.db" / sample.__name__
    sample(paimon_java, made)
    kept = SAMPLES / sample.__name__
    assert paimon_java.schema(made)["fields"] == paimon_java.schema(kept)["fields"]
    assert paimon_java.schema(made)["options"] == paimon_java.schema(kept)["options"]
    for scan in (Scan(), MERGED):
        assert paimon_java.read_digest(made, scan) == paimon_java.read_digest(kept, scan)
