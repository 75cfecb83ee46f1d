"""Messages about names that are unknown name the one that was meant, where one is near."""

from __future__ import annotations

from pathlib import Path

import pytest

import nightkeep
from nightkeep.errors import NightkeepError, UsageError, did_you_mean

SHOP = Path(__file__).parents[2] / "samples" / "delta" / "shop.db"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("pagee", "; did you mean page?"), ("PAGE", "; did you mean page?"), ("nothing alike", ""), ("", "")],
)
def test_the_nearest_name_is_meant(name: str, expected: str) -> None:
    assert did_you_mean(name, ["user_id", "page", "Pages"]) == expected


ASKED = {
    "did you mean clicks?": {"table": f"delta:{SHOP}/clickz"},
    "did you mean page?": {"zorder": "pagee"},
    "did you mean day?": {"where": "dday = '2026-01-01'"},
    f"did you mean delta:{SHOP}/clicks?": {"table": f"dlta:{SHOP}/clicks"},
}


@pytest.mark.slow
@pytest.mark.parametrize("expected", ASKED)
def test_near_misses_of_addresses_and_columns_are_named(expected: str, tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text("version: 1\n")
    asked = {
        "table": f"delta:{SHOP}/clicks",
        "policy": tmp_path / "tables.yaml",
        "reports": tmp_path,
        **ASKED[expected],
    }
    with pytest.raises(UsageError) as failure:
        nightkeep.plan(**asked)  # type: ignore[arg-type]
    assert expected in str(failure.value)


@pytest.mark.slow
def test_a_condition_on_rows_names_the_column_that_is_near(tmp_path: Path) -> None:
    with pytest.raises(NightkeepError, match=r"did you mean user_id\?\), found usr_id"):
        nightkeep.delete(f"delta:{SHOP}/clicks", rows_where="usr_id = 7", dry_run=True, reports=tmp_path)
