"""Expired log files of Delta tables: what goes and in which order, what stays and why, and a store that fails."""

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.formats.delta.checkpointed import checkpointed
from tests.formats.delta.dated_log import DAYS, EXPIRED, NOON, DatedLog, added, at, commit_names, touch
from tests.formats.delta.hand_log import HandLog
from tests.support.faulty_store import FaultyStorage, Fuse, Point, fail

from nightkeep.errors import EvidenceError, NightkeepError
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.log_upkeep import LogResult


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> DatedLog:
    log = DatedLog(tmp_path_factory.mktemp("grown") / "table")
    log.grow()
    return log


@pytest.fixture
def log(grown: DatedLog, tmp_path: Path) -> DatedLog:
    shutil.copytree(grown.folder, tmp_path / "table")
    return replace(grown, folder=tmp_path / "table")


def test_an_expired_log_is_cut_at_the_newest_expired_version_which_gets_a_checkpoint(log: DatedLog) -> None:
    before = {version: log.content(version) for version in range(EXPIRED, DAYS)}
    planned = log.plan()
    assert (planned.checkpoints, planned.oldest, planned.notes) == ((EXPIRED, DAYS - 1), EXPIRED, ())
    assert {Path(name).name for name, _ in planned.files} == commit_names(0, EXPIRED)
    assert log.names == commit_names(0)
    done = log.tend()
    assert (done.checkpoints, done.oldest, done.failed) == (planned.checkpoints, EXPIRED, ())
    assert done.removed == planned.files and done.bytes == planned.bytes > 0
    written = {f"{version:020d}.checkpoint.parquet" for version in planned.checkpoints}
    assert log.names == commit_names(EXPIRED) | written | {"_last_checkpoint"}
    assert json.loads((log.log / "_last_checkpoint").read_text())["version"] == DAYS - 1
    assert {version: log.content(version) for version in range(EXPIRED, DAYS)} == before
    assert not log.plan() and log.tend() == LogResult()


def test_a_plan_changes_nothing(log: DatedLog) -> None:
    before = {path: path.read_bytes() for path in log.log.iterdir()}
    assert log.plan()
    assert {path: path.read_bytes() for path in log.log.iterdir()} == before


def test_an_older_checkpoint_will_do_if_the_interval_is_not_full(log: DatedLog) -> None:
    log.checkpoint(EXPIRED - 9)
    log.checkpoint(EXPIRED - 12)
    log.checkpoint(DAYS - 1)
    assert (log.plan().checkpoints, log.plan().oldest) == ((), EXPIRED - 9)
    log.tend()
    kept = {f"{version:020d}.checkpoint.parquet" for version in (EXPIRED - 9, DAYS - 1)}
    assert log.names == commit_names(EXPIRED - 9) | kept | {"_last_checkpoint"}


@pytest.mark.parametrize(
    ("asked", "oldest"),
    [
        ({"keep": frozenset({4, 30})}, None),
        ({"keep": frozenset({12})}, 12),
        ({"keep": frozenset({DAYS - 1})}, EXPIRED),
        ({"older_than_ms": 39 * DAY_MS}, None),
        ({"older_than_ms": 35 * DAY_MS}, EXPIRED - 5),
        ({"older_than_ms": DAY_MS}, EXPIRED),
        ({"retain_last": 1}, EXPIRED),
        ({"retain_last": DAYS - 11}, 11),
        ({"retain_last": 10 * DAYS}, None),
    ],
)
def test_what_keeps_more_applies(log: DatedLog, asked: dict[str, Any], oldest: int | None) -> None:
    assert log.plan(**asked).oldest == oldest
    log.tend(**asked)
    assert commit_names(0) & log.names == commit_names(oldest or 0)


@pytest.mark.parametrize(
    ("properties", "oldest"),
    [
        ({"delta.logRetentionDuration": "interval 5 days"}, DAYS - 7),
        ({"delta.logRetentionDuration": "interval 5 weeks"}, EXPIRED - 5),
        ({"delta.checkpointInterval": "40"}, None),
        ({"delta.enableExpiredLogCleanup": "false"}, None),
    ],
)
def test_the_tables_own_properties_decide(tmp_path: Path, properties: dict[str, str], oldest: int | None) -> None:
    log = DatedLog(tmp_path / "table", configuration=properties)
    log.grow()
    planned = log.plan()
    assert planned.oldest == oldest
    assert bool(planned.notes) == ("delta.enableExpiredLogCleanup" in properties)
    log.tend()
    assert commit_names(0) & log.names == commit_names(oldest or 0)


def test_nothing_is_removed_where_files_are_to_be_quarantined(log: DatedLog) -> None:
    assert log.tend(removes=False).checkpoints == (DAYS - 1,)
    assert commit_names(0) <= log.names


@pytest.mark.parametrize("name", ["timestamp", "inCommitTimestamp"])
def test_a_commit_is_as_young_as_it_states_itself(log: DatedLog, name: str) -> None:
    """A log that was copied by a tool that keeps other times, or a commit whose own time counts."""
    log.made(EXPIRED, added(EXPIRED), **{name: at(EXPIRED + 3)})
    assert log.plan().oldest == EXPIRED - 1


def test_a_young_file_among_old_ones_keeps_all_after_it(log: DatedLog) -> None:
    touch(log.log / f"{13:020d}.json", NOON)
    assert log.plan().oldest == 12


@pytest.mark.parametrize(("protected", "oldest"), [(EXPIRED, EXPIRED), (EXPIRED + 1, None), (5, EXPIRED)])
def test_protected_checkpoints_go_all_at_once_or_not(tmp_path: Path, protected: int, oldest: int | None) -> None:
    features = ("deletionVectors", "checkpointProtection")
    properties = {"delta.requireCheckpointProtectionBeforeVersion": str(protected)}
    log = DatedLog(tmp_path / "table", features=features, configuration=properties)
    log.grow()
    planned = log.plan()
    assert planned.oldest == oldest
    assert planned.checkpoints == ((EXPIRED, DAYS - 1) if oldest else (DAYS - 1,))
    assert bool(planned.notes) == (oldest is None)


def test_a_log_with_a_gap_loses_nothing(log: DatedLog) -> None:
    log.checkpoint(30)
    (log.log / f"{25:020d}.json").unlink()
    before, planned = log.names, log.plan()
    assert not planned.files and planned.notes == ("commit 25 is missing from the log: log files stay",)
    log.tend()
    assert before <= log.names


def test_a_feature_that_we_do_not_handle_keeps_the_log(tmp_path: Path) -> None:
    log = DatedLog(tmp_path / "table", features=("deletionVectors", "wings"))
    log.grow()
    planned = log.plan()
    assert not planned and "wings" in planned.notes[0]
    assert log.tend().notes == planned.notes and log.names == commit_names(0)


def test_all_files_of_expired_versions_go_in_the_protocols_order(log: DatedLog) -> None:
    log.checkpoint(5)
    log.checkpoint(EXPIRED)
    more = [
        f"{3:020d}.crc",
        f".{3:020d}.json.crc",
        f"{4:020d}.{9:020d}.compacted.json",
        f"{EXPIRED:020d}.{EXPIRED + 2:020d}.compacted.json",
        f"{7:020d}.checkpoint.{1:010d}.{2:010d}.parquet",
    ]
    stays = [
        f"{EXPIRED:020d}.crc",
        f"{EXPIRED + 1:020d}.{EXPIRED + 2:020d}.compacted.json",
        "notes.txt",
        f"{3:020d}.bak",
    ]
    for name in (*more, *stays):
        (log.log / name).write_text("{}")
    names = [Path(name).name for name, _ in log.plan().files]
    assert names == [
        *[name for version in range(4) for name in [f"{version:020d}.json"] + [more[1]] * (version == 3)],
        *[f"{version:020d}.json" for version in range(4, EXPIRED)],
        more[0],
        more[2],
        more[3],
        f"{5:020d}.checkpoint.parquet",
        more[4],
    ]
    log.tend()
    assert not set(names) & log.names and set(stays) <= log.names


def test_sidecars_go_that_no_checkpoint_names(tmp_path: Path) -> None:
    log = DatedLog(tmp_path / "table", configuration={"delta.checkpointPolicy": "v2"})
    log.grow()
    for version in (5, EXPIRED):
        checkpointed(log.folder, version=version, now_ms=at(version), sidecar_actions=2)
    sidecars = log.log / "_sidecars"
    for path in sidecars.iterdir():
        touch(path, at(EXPIRED) - DAY_MS)
    stray, young, other = (sidecars / name for name in ("stray.parquet", "young.parquet", "other.txt"))
    for path in (stray, young, other):
        path.write_bytes(b"x")
        touch(path, NOON if path == young else at(5))
    (kept,) = log.log.glob(f"{EXPIRED:020d}.checkpoint.*")
    needed = {row["path"] for row in pq.read_table(kept, columns=["sidecar"]).column(0).to_pylist() if row}
    assert len(needed) > 1
    content = log.content(EXPIRED)
    log.tend()
    assert {path.name for path in sidecars.iterdir()} == needed | {young.name, other.name}
    assert log.content(EXPIRED) == content


@pytest.mark.parametrize("hint", [None, "{", '{"version": 5, "size": 1}'])
def test_the_hint_is_moved_before_its_checkpoint_goes(log: DatedLog, hint: str | None) -> None:
    for version in (5, EXPIRED):
        log.checkpoint(version)
    log.checkpoint(DAYS - 1)
    (log.log / "_last_checkpoint").unlink()
    if hint is not None:
        (log.log / "_last_checkpoint").write_text(hint)
    log.tend()
    found = json.loads((log.log / "_last_checkpoint").read_text())
    rows = pq.ParquetFile(log.log / f"{EXPIRED:020d}.checkpoint.parquet").metadata.num_rows
    assert (found["version"], found["size"]) == (EXPIRED, rows)


@pytest.mark.parametrize("lie", ["lost", "other", "cut", "head"])
def test_a_checkpoint_that_is_not_the_log_replaces_nothing(log: DatedLog, lie: str) -> None:
    log.checkpoint(DAYS - 1)
    honest = HandLog(log.folder, features=log.features)
    adds = [added(EXPIRED - back) for back in range(3)]
    if lie == "lost":
        adds.pop()
    if lie == "other":
        adds[0] = {"add": {**adds[0]["add"], "size": 101}}
    actions = [*([] if lie == "head" else log.head), *adds]
    honest.single(EXPIRED, actions)
    path = log.log / f"{EXPIRED:020d}.checkpoint.parquet"
    if lie == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(NightkeepError) as raised:
        log.tend()
    assert lie == "cut" or isinstance(raised.value, EvidenceError)
    assert commit_names(0) <= log.names


def test_a_foreign_checkpoint_that_is_the_log_replaces_it(log: DatedLog) -> None:
    HandLog(log.folder).single(EXPIRED, [*log.head, *(added(EXPIRED - back) for back in range(3))])
    log.checkpoint(DAYS - 1)
    content = log.content(EXPIRED)
    assert log.tend().oldest == EXPIRED
    assert commit_names(0) & log.names == commit_names(EXPIRED) and log.content(EXPIRED) == content


def test_commits_go_from_the_oldest_on_after_the_checkpoint_is_there(log: DatedLog) -> None:
    fuse = Fuse()
    log.tend(storage=FaultyStorage(str(log.folder), fuse))
    deleted = [Path(point.name).name for point in fuse.passed if point.step == "delete" and ".staged" not in point.name]
    assert set(deleted) == commit_names(0, EXPIRED)
    first = next(at for at, point in enumerate(fuse.passed) if Path(point.name).name in deleted)
    linked = [Path(point.name).name for point in fuse.passed[:first] if point.step in ("link", "rename")]
    assert {f"{EXPIRED:020d}.checkpoint.parquet", "_last_checkpoint"} <= set(linked)


def passed(log: DatedLog) -> list[Point]:
    clean = Fuse()
    copy = Path(shutil.copytree(log.folder, log.folder.parent / "clean"))
    replace(log, folder=copy).tend(storage=FaultyStorage(str(copy), clean))
    return clean.passed


def test_every_write_fails_once(tmp_path: Path) -> None:
    log = DatedLog(tmp_path / "table", configuration={"delta.logRetentionDuration": "interval 44 days"})
    log.grow()
    oldest = DAYS - 1 - 45
    log.checkpoint(oldest)
    content = {version: log.content(version) for version in (oldest, DAYS - 1)}
    points = passed(log)
    assert {point.step for point in points} == {"create", "link", "rename", "delete"}
    for number in range(1, len(points) + 1):
        folder = Path(shutil.copytree(log.folder, tmp_path / f"copy-{number}"))
        copy = replace(log, folder=folder)
        with suppress(OSError, NightkeepError):
            copy.tend(storage=FaultyStorage(str(folder), Fuse(number, fail)))
        assert {version: copy.content(version) for version in content} == content
        hint = copy.log / "_last_checkpoint"
        assert not hint.exists() or list(copy.log.glob(f"{json.loads(hint.read_text())['version']:020d}.checkpoint*"))
        copy.tend()
        assert {version: copy.content(version) for version in content} == content
        assert commit_names(0) & copy.names == commit_names(oldest)
        shutil.rmtree(folder)


def test_the_rest_goes_where_an_earlier_cleanup_was_interrupted(log: DatedLog) -> None:
    log.checkpoint(5)
    log.checkpoint(EXPIRED)
    for version in (0, 1, 2, 7, 8):
        (log.log / f"{version:020d}.json").unlink()
    content = log.content(EXPIRED)
    log.tend()
    assert commit_names(0) & log.names == commit_names(EXPIRED)
    assert f"{5:020d}.checkpoint.parquet" not in log.names and log.content(EXPIRED) == content
