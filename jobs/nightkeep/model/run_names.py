"""Identity of a run -> the names by which files and commits tell whose they are, the same in every format."""

from __future__ import annotations

import hashlib
from typing import Final

from nightkeep.model.identity import UnitKey
from nightkeep.model.request import Run

MARK: Final = "nk"
"""In the name of every file that a run creates."""
COMMIT_USER: Final = "nightkeep-"
"""What the name of each run in its commits begins with."""
RETRY_HORIZON_MS: Final = 7 * 24 * 3600 * 1000
"""How far back a run looks for its own commit: Airflow's retries are long over by then."""


def unit_token(key: UnitKey) -> str:
    """What stands for a unit in file names: eight hexadecimal digits."""
    return hashlib.sha256(str(key).encode()).hexdigest()[:8]


def file_stem(run: Run, key: UnitKey | None) -> str:
    """What files of one attempt at one unit, or at the table, have in their names: a leftover tells whose it is."""
    return f"{MARK}-{run.token}-{unit_token(key) if key else 'table'}-{run.attempt}"


def commit_user(token: str) -> str:
    """What a commit calls the run with this token; the same for all its attempts, and for no other run."""
    return f"{COMMIT_USER}{token}"


def horizon_ms(run: Run, newest_ms: int) -> int:
    """No commit of the run is older than this; `newest_ms` is the time of the newest commit.

    The clock of this machine may be ahead of those of all writers.
    """
    return min(run.now_ms, newest_ms) - RETRY_HORIZON_MS
