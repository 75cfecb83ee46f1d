"""Whoever watches is told of stages; nobody is told where nobody watches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from nightkeep.progress import Stage, in_stage, note, task_counter, watching


class Log:
    def __init__(self) -> None:
        self.lines = list[str]()

    def began(self, stage: Stage) -> None:
        self.lines.append(f"{stage.table} {stage.name}")

    def counted(self, stage: Stage, done: int, total: int) -> None:
        self.lines.append(f"{stage.table} {done} of {total}")

    def ended(self, stage: Stage) -> None:
        self.lines.append(f"{stage.table} {stage.name} ended")

    def noted(self, text: str) -> None:
        self.lines.append(text)


def stage(table: str, name: str = "rewrite") -> Stage:
    return Stage(table, "optimize", name)


def test_without_a_watcher_nothing_is_told_and_nothing_is_counted() -> None:
    with in_stage(stage("t")):
        note("nobody hears it")
        assert task_counter(3) is None
    log = Log()
    with watching(log):
        assert task_counter(3) is None
    assert log.lines == []


def test_a_stage_that_fails_has_ended() -> None:
    log = Log()
    with watching(log), pytest.raises(ValueError, match="x"), in_stage(stage("t")):
        raise ValueError("x")
    assert log.lines == ["t rewrite", "t rewrite ended"]
    with in_stage(stage("t")):
        pass
    assert len(log.lines) == 2


def test_each_thread_has_a_stage_of_its_own_and_all_have_the_same_watcher() -> None:
    log = Log()

    def work(table: str) -> None:
        with in_stage(stage(table, "plan")), in_stage(stage(table)):
            counter = task_counter(2)
            assert counter is not None
            counter(1)

    with watching(log), ThreadPoolExecutor(2) as threads:
        assert [*threads.map(work, ["a", "b"])] == [None, None]
    for table in "ab":
        mine = [line for line in log.lines if line.startswith(table)]
        assert mine == [f"{table} {each}" for each in ("plan", "rewrite", "1 of 2", "rewrite ended", "plan ended")]
