"""Corrections: medians of what was measured, bounded whatever the ledger holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.estimates.corrections import LEAST, MOST, UNCORRECTED, correction, read_corrections
from nightkeep.estimates.run_costs import seconds_of
from nightkeep.model import Operation
from nightkeep.records import Measured

EXPECTED = seconds_of(Operation.OPTIMIZE, units=2, reads=300, writes=250)
RUN = Measured(
    table="t",
    operation=Operation.OPTIMIZE,
    run_id="monday",
    units=2,
    reads=300,
    new_files=4,
    new_bytes=250,
    more_files=-2,
    more_bytes=-50,
    files=-2,
    bytes=-50,
    seconds=EXPECTED,
)
ANY = st.integers(-(1 << 63), 1 << 63)
RUNS = st.lists(
    st.builds(
        Measured,
        table=st.just("t"),
        operation=st.sampled_from(Operation),
        run_id=st.text(max_size=1),
        units=ANY,
        reads=ANY,
        new_files=ANY,
        new_bytes=ANY,
        more_files=ANY,
        more_bytes=ANY,
        files=ANY,
        bytes=ANY,
        seconds=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=15,
)


@given(RUNS, RUNS)
def test_corrections_are_bounded(own: Sequence[Measured], others: Sequence[Measured]) -> None:
    found = correction(own, lambda: others)
    for figure in (found.files, found.bytes, found.seconds):
        assert LEAST <= figure <= MOST


def test_a_run_as_expected_corrects_nothing() -> None:
    found = correction([RUN], lambda: pytest.fail("others are not asked"))
    assert (found.files, found.bytes, found.seconds) == (1, 1, pytest.approx(1))
    assert found.learned_from == "1 run of this table"


def test_the_median_of_the_last_ten_counts() -> None:
    old = [replace(RUN, files=200, seconds=99 * EXPECTED)] * 9
    new = [replace(RUN, files=files, seconds=times * EXPECTED) for files, times in [(-4, 1), (2, 2), (98, 4)] * 3]
    found = correction([*old, RUN, *new], list)
    assert found.files == 2 and found.seconds == pytest.approx(2)
    assert found.learned_from == "10 runs of this table"


def test_a_table_without_runs_learns_from_others_of_its_format() -> None:
    found = correction([], lambda: [replace(RUN, bytes=75, seconds=3 * EXPECTED)] * 5)
    assert (found.files, found.bytes, found.seconds) == (1, 1.5, pytest.approx(3))
    assert found.learned_from == "5 runs of tables of its format"
    assert correction([], list) == UNCORRECTED


def test_nothing_is_learned_from_a_few_other_tables() -> None:
    assert correction([], lambda: [replace(RUN, files=9, bytes=75, seconds=3 * EXPECTED)] * 4) == UNCORRECTED


def test_seconds_come_from_others_where_no_run_of_the_table_was_checked() -> None:
    found = correction([replace(RUN, seconds=None, bytes=75)], lambda: [replace(RUN, seconds=3 * EXPECTED)])
    assert found.bytes == 1.5 and found.seconds == pytest.approx(3)


def test_nothing_written_and_nothing_read_divide_nothing() -> None:
    nothing = replace(RUN, reads=0, new_files=0, new_bytes=0, files=5, seconds=0.0)
    found = correction([nothing], list)
    assert (found.files, found.bytes, found.seconds) == (1, 1, LEAST)


def test_a_folder_without_a_ledger_corrects_nothing(tmp_path: Path) -> None:
    for operation in Operation:
        assert read_corrections(str(tmp_path), "t", format="delta", operation=operation) == UNCORRECTED
