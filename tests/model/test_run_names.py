"""Names of runs in files and in commits."""

from nightkeep.model import Run, UnitKey
from nightkeep.model.run_names import COMMIT_USER, RETRY_HORIZON_MS, commit_user, file_stem, horizon_ms, unit_token

RUN = Run("nightly", "0" * 16, "a1", 10 * RETRY_HORIZON_MS)


def test_a_stem_shows_run_unit_and_attempt() -> None:
    key = UnitKey("day=1")
    assert file_stem(RUN, key) == f"nk-{'0' * 16}-{unit_token(key)}-a1"
    assert file_stem(RUN, None) == f"nk-{'0' * 16}-table-a1"
    assert len(unit_token(key)) == 8 and unit_token(key) != unit_token(UnitKey("day=2"))


def test_a_commit_user_is_the_runs_alone() -> None:
    assert commit_user("x") == f"{COMMIT_USER}x" == "nightkeep-x"


def test_the_horizon_goes_by_the_earlier_clock() -> None:
    assert horizon_ms(RUN, RUN.now_ms + 1) == RUN.now_ms - RETRY_HORIZON_MS
    assert horizon_ms(RUN, RUN.now_ms - 5) == RUN.now_ms - 5 - RETRY_HORIZON_MS
