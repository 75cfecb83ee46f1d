"""Names of runs in files and in commits."""

from dataclasses import replace

import pytest

from nightkeep.model import Address, Run, UnitKey
from nightkeep.model.run_names import (
    COMMIT_USER,
    RETRY_HORIZON_MS,
    commit_user,
    committer,
    file_stem,
    horizon_ms,
    unit_token,
)

RUN = Run("nightly", "0" * 16, "a1", 10 * RETRY_HORIZON_MS)


def test_a_stem_shows_run_unit_and_attempt() -> None:
    key = UnitKey("day=1")
    assert file_stem(RUN, key) == f"nk-{'0' * 16}-{unit_token(key)}-a1"
    assert file_stem(RUN, None) == f"nk-{'0' * 16}-table-a1"
    assert len(unit_token(key)) == 8 and unit_token(key) != unit_token(UnitKey("day=2"))


def test_a_commit_user_is_the_runs_alone() -> None:
    assert commit_user("x") == f"{COMMIT_USER}x" == "nightkeep-x"
    assert committer(RUN) == commit_user(RUN.token)
    branches = {committer(replace(RUN, branch=name)) for name in ("", "dev", "test")}
    assert len(branches) == 3 and all(name.startswith(committer(RUN)) for name in branches)


@pytest.mark.parametrize(
    ("location", "branch"),
    [("lake/shop.orders$branch_dev", "dev"), ("/t$branch_main", ""), ("/t", ""), ("lake/a.t$branch_a/b", "a/b")],
)
def test_an_address_names_a_branch_that_is_not_main(location: str, branch: str) -> None:
    assert Address("any", location, "t").branch == branch


def test_the_horizon_goes_by_the_earlier_clock() -> None:
    assert horizon_ms(RUN, RUN.now_ms + 1) == RUN.now_ms - RETRY_HORIZON_MS
    assert horizon_ms(RUN, RUN.now_ms - 5) == RUN.now_ms - 5 - RETRY_HORIZON_MS
