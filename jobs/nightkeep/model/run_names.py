"""The identity of a run -> the names of its files and commits, the same in every format."""

from __future__ import annotations

import hashlib
from typing import Final

from nightkeep.model.identity import UnitKey
from nightkeep.model.request import Run
from nightkeep.model.sweep_rules import DAY_MS

MARK: Final = "nk"
"""Part of the name of every file that a run creates."""
COMMIT_USER: Final = "nightkeep-"
"""Prefix of the committer's name in the commits of all runs."""
RETRY_HORIZON_MS: Final = 7 * DAY_MS
"""How far back a run looks for its own commit. Airflow's retries end long before."""


def unit_token(key: UnitKey) -> str:
    """The token of a unit, for file names: eight hexadecimal digits."""
    return hashlib.sha256(str(key).encode()).hexdigest()[:8]


def file_stem(run: Run, key: UnitKey | None) -> str:
    """The part of file names that identifies the run, its attempt and the unit (None: the whole table)."""
    return f"{MARK}-{run.token}-{unit_token(key) if key else 'table'}-{run.attempt}"


def committer(run: Run) -> str:
    """The committer's name of this run, as `commit_user`."""
    return commit_user(run.token, run.branch)


def commit_user(token: str, branch: str = "") -> str:
    """The committer's name for the run with this token: the same for all attempts, different for every other run.

    It differs by branch, as a branch begins with commits of another: a run of one must not take these for its own.
    """
    mark = f"-{hashlib.sha256(branch.encode()).hexdigest()[:8]}" if branch else ""
    return f"{COMMIT_USER}{token}{mark}"


def horizon_ms(run: Run, newest_ms: int) -> int:
    """A time before which the run has no commit, in epoch milliseconds. `newest_ms`: the time of the newest commit.

    Counts from the older of our time and `newest_ms`, as our clock may be ahead of those of all writers.
    """
    return min(run.now_ms, newest_ms) - RETRY_HORIZON_MS
