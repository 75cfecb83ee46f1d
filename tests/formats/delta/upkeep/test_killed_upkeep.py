"""The process dies at every write of a checkpoint and of a cleanup: each version reads as before, and the next one ends
the work."""

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.formats.delta.checkpointed import alone, checkpointed
from tests.formats.delta.dated_log import DAYS, NOON, DatedLog, commit_names
from tests.formats.delta.hand_log import HandLog, add, remove
from tests.formats.delta.killed_upkeep import SIDECARS, checkpoint_and_die, clean_up_and_die
from tests.formats.delta.runs import opened
from tests.support.faulty_store import TURNS, FaultyStorage, Fuse, Point, places
from tests.support.processes import child

KEPT = 44
"""Days of the log that stay, so that a few commits go."""


def hint_names_a_checkpoint(log: Path) -> bool:
    hint = log / "_last_checkpoint"
    return not hint.exists() or bool(list(log.glob(f"{json.loads(hint.read_text())['version']:020d}.checkpoint*")))


def points_of_checkpoint(table: Path) -> list[Point]:
    clean, copy = Fuse(), Path(shutil.copytree(table, table.parent / "clean"))
    checkpointed(copy, storage=FaultyStorage(str(copy), clean), now_ms=NOON, sidecar_actions=SIDECARS)
    shutil.rmtree(copy)
    return clean.passed


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_checkpoint_dies_at_every_write(policy: str, turn: int, tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", configuration={"delta.checkpointPolicy": policy})
    log.commit(0, *log.head, add("a"), add("b"))
    log.commit(1, add("c"), add("d"), remove("b", deletionTimestamp=NOON))
    content = log.load().identity.content
    points = points_of_checkpoint(log.folder)
    assert {point.step for point in points} == {"create", "link", "rename", "delete"}
    for at in places(len(points), turn):
        point, table = str(points[at - 1]), Path(shutil.copytree(log.folder, tmp_path / f"copy-{at}"))
        with child(checkpoint_and_die, table, NOON, at) as process:
            assert process.end() == -signal.SIGKILL, point
        assert opened(table).snapshot().identity.content == content, point
        assert hint_names_a_checkpoint(table / "_delta_log"), point
        HandLog(table).commit(2, add("e"))
        assert checkpointed(table, now_ms=NOON, sidecar_actions=SIDECARS) is not None, point
        alone(table)
        assert {file.path for unit in opened(table).snapshot().units for file in unit.files} == {*"acde"}, point
        shutil.rmtree(table)


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
def test_a_cleanup_dies_at_every_write(turn: int, tmp_path: Path) -> None:
    log = DatedLog(tmp_path / "table", configuration={"delta.logRetentionDuration": f"interval {KEPT} days"})
    log.grow()
    oldest = DAYS - 1 - (KEPT + 1)
    log.checkpoint(oldest)
    content = {version: log.content(version) for version in (oldest, DAYS - 1)}
    clean, copy = Fuse(), Path(shutil.copytree(log.folder, tmp_path / "clean"))
    replace(log, folder=copy).tend(storage=FaultyStorage(str(copy), clean))
    assert {point.step for point in clean.passed} == {"create", "link", "rename", "delete"}
    for at in places(len(clean.passed), turn):
        point, folder = str(clean.passed[at - 1]), Path(shutil.copytree(log.folder, tmp_path / f"copy-{at}"))
        dead = replace(log, folder=folder)
        with child(clean_up_and_die, folder, NOON, at) as process:
            assert process.end() == -signal.SIGKILL, point
        assert {version: dead.content(version) for version in content} == content, point
        assert hint_names_a_checkpoint(dead.log), point
        # Commits go from the oldest on: what is left has no gap.
        left = sorted(commit_names(0) & dead.names)
        assert left == sorted(commit_names(DAYS - len(left))), point
        assert not dead.tend().failed, point
        assert {version: dead.content(version) for version in content} == content, point
        assert commit_names(0) & dead.names == commit_names(oldest), point
        shutil.rmtree(folder)
