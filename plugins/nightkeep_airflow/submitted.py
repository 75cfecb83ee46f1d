"""A mark in the environment -> the processes of one submitted job, which are ended.

spark-submit, its JVM, the driver and its workers all inherit a variable that no other process has. A search by parents
alone would miss a driver whose JVM was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil  # type: ignore[import-untyped]

MARK = "NIGHTKEEP_SUBMITTED"
GRACE_SECONDS = 3
"""Airflow sends SIGKILL five seconds after SIGTERM, so Spark must have ended by then."""


def family(mark: str) -> list[psutil.Process]:
    """Every process of ours that was started with `mark` in its environment, or below one that was."""
    processes: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                processes |= {each.pid: each for each in (process, *process.children(recursive=True))}
        except psutil.Error:
            # The process is another user's, or has ended since it was listed.
            continue
    return list(processes.values())


def end(mark: str, *, grace_seconds: float = GRACE_SECONDS) -> None:
    """End them all: SIGTERM first, so that Spark removes its folders, and SIGKILL after the grace.

    Processes that start meanwhile are found by another search.
    """
    asked, deadline = set[int](), time.monotonic() + grace_seconds
    while (alive := _alive(mark)) and time.monotonic() < deadline:
        for process in alive:
            if process.pid not in asked:
                _signal(process.terminate)
                asked.add(process.pid)
        psutil.wait_procs(alive, timeout=0.2)
    for process in alive:
        _signal(process.kill)
    psutil.wait_procs(alive, timeout=1)


def _alive(mark: str) -> list[psutil.Process]:
    return [process for process in family(mark) if process.is_running() and not _is_zombie(process)]


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _signal(send: Callable[[], object]) -> None:
    """A process may end by itself between the listing and the signal."""
    try:
        send()
    except psutil.NoSuchProcess:
        return
