"""Reasons to touch nothing, each at its edge."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nightkeep.errors import EvidenceError, UsageError
from nightkeep.model import Address, Run
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import TableFiles
from nightkeep.retention.orphans.guards import FEW, check_age, check_evidence, clocks_apart, store_ahead_ms, too_many
from nightkeep.retention.orphans.sets import NO_FILES, FileFault, FileTotals, SetCounts
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.storage import LocalStorage

HOUR_MS = 60 * 60 * 1000
RUN = Run("run", "f" * 16, "ab" * 4, 0)
NOTHING = SetCounts(*[NO_FILES] * 5, {}, 0, 0, ())
SOME = replace(NOTHING, listed=FileTotals(10), live=FileTotals(6), orphans=FileTotals(4))


@pytest.fixture
def table_files(tmp_path: Path) -> TableFiles:
    return TableFiles(Address("delta", str(tmp_path), "t"), LocalStorage(str(tmp_path)), "", (), floor_ms=DAY_MS)


def test_no_file_below_the_floor_goes_unless_asked(table_files: TableFiles) -> None:
    check_age(SweepOrder(older_than_ms=DAY_MS), table_files)
    check_age(SweepOrder(older_than_ms=0, below_floor=True), table_files)
    with pytest.raises(UsageError, match=r"t: files older than 23\.5 h asked for, expected at least 24 h"):
        check_age(SweepOrder(older_than_ms=int(23.5 * HOUR_MS)), table_files)


@pytest.mark.parametrize(
    ("counted", "message"),
    [
        (replace(SOME, missing=1, examples=(FileFault("a", 3, None),)), "1 missing, 0 of another size: a is not there"),
        (replace(SOME, resized=1, examples=(FileFault("a", 3, 4),)), "0 missing, 1 of another size: a has 4 bytes"),
        (replace(SOME, live=NO_FILES), "some that a snapshot names, found none of 10"),
        (replace(SOME, doubled=1, doubles=("a and b",)), "1 that may be one file under two names: a and b"),
    ],
)
def test_evidence_that_does_not_fit_stops_a_sweep(counted: SetCounts, message: str, table_files: TableFiles) -> None:
    check_evidence(SOME, table_files)
    with pytest.raises(EvidenceError, match=message):
        check_evidence(counted, table_files)


def test_a_table_without_files_has_nothing_to_prove(table_files: TableFiles) -> None:
    check_evidence(NOTHING, table_files)


@pytest.mark.parametrize(
    ("orphans", "listed", "unknown", "stops"),
    [
        (FEW, FEW, 0, False),
        (FEW + 1, 2 * FEW + 2, 0, False),
        (FEW + 1, 2 * FEW + 1, 0, True),
        (FEW + 1, 2 * FEW + 2, 1, True),
    ],
)
def test_more_than_the_share_of_known_files_does_not_go_at_once(
    orphans: int, listed: int, unknown: int, stops: bool
) -> None:
    counted = replace(NOTHING, listed=FileTotals(listed), unknown=FileTotals(unknown), orphans=FileTotals(orphans))
    assert (too_many(counted, SweepOrder()) is not None) is stops
    assert too_many(counted, SweepOrder(max_share=1.0)) is None


def test_a_clock_that_is_an_hour_off_reports_no_age() -> None:
    assert clocks_apart(HOUR_MS) is clocks_apart(-HOUR_MS) is None
    assert clocks_apart(HOUR_MS + 1) == "the store's clock is 1 h ahead of ours: ages cannot be determined"
    assert "behind ours" in str(clocks_apart(-2 * HOUR_MS))


@pytest.mark.parametrize("off", [0, 5 * HOUR_MS, -5 * HOUR_MS])
def test_the_stores_clock_is_read_from_a_file_that_goes_again(
    off: int, table_files: TableFiles, tmp_path: Path
) -> None:
    stored: list[int] = []

    class Watched(LocalStorage):
        def stat(self, name: str) -> Any:
            found = super().stat(name)
            assert found is not None
            stored.append(found.modified_ms)
            return found

    table_files = replace(table_files, storage=Watched(str(tmp_path)))
    now = int(Path(tmp_path).stat().st_mtime * 1000)
    ahead = store_ahead_ms(table_files, RUN, lambda: now - off)
    assert abs(ahead - off) < 10_000 and stored
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
