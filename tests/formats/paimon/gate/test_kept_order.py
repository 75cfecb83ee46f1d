"""New files against those they replace: what later merges go by is there, and every way to lose it is named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import RETRACTS, MadeBucket, Row
from tests.support.examples import examples

from nightkeep.formats.paimon.gate.kept_order import order_faults

PLAIN = {"deletion-vectors.enabled": "false"}
UPDATES = {**PLAIN, "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
Files = Sequence[tuple[int, Sequence[Row]]]


def faults(
    replaced: Files,
    new: Files,
    *,
    kept: Files = (),
    lifted: Mapping[int, int] | None = None,
    options: Mapping[str, str] = PLAIN,
) -> list[str]:
    """`replaced` files became `new` ones beside `kept`; the kept files of the numbers in `lifted` got other levels."""
    made = MadeBucket(dict(options))
    for level, rows in (*replaced, *kept, *new):
        made.add(level, rows)
    bucket = made.bucket()
    names = [file.name for file in made.files]
    before = tuple(f for f in bucket.files if f.name in names[: len(replaced) + len(kept)])
    moved = {names[len(replaced) + number]: level for number, level in (lifted or {}).items()}
    after = tuple(
        replace(file, level=moved.get(file.name, file.level))
        for file in bucket.files
        if file.name in names[len(replaced) :]
    )
    return list(order_faults(made.storage, replace(bucket, files=before), replace(bucket, files=after)))


OLD, NEW = [Row(1, "a", 1), Row(2, "b", 2), Row(3, "c", 3)], [Row(2, "x", 7, 3), Row(3, "y", 8), Row(5, "z", 9, 3)]
BELOW = [Row(2, "old", 0), Row(9, "old", 0)]


def test_right_files_have_no_fault() -> None:
    files = ((0, NEW), (3, OLD))
    assert faults(files, [(5, [OLD[0], NEW[1]])]) == []
    assert faults(files, [(4, [OLD[0], *NEW])], kept=[(5, BELOW)]) == []
    assert faults([(0, [Row(2, "x", 7, 3)])], [], kept=[(5, [Row(9)])]) == []
    assert faults([(0, [Row(2, "x", 7, 3)])], [], kept=[(5, BELOW)]) != []
    assert faults([], [], kept=[(0, NEW)], lifted={0: 5}) == []


@pytest.mark.parametrize(
    ("new", "named"),
    [
        ([OLD[0], NEW[1]], "2 keys without"),
        ([OLD[0], NEW[0], NEW[1]], "1 keys without"),
        ([OLD[0], OLD[1], NEW[1], NEW[2]], "1 keys without"),
        ([OLD[0], NEW[0], OLD[2], NEW[2]], "1 keys without"),
        ([OLD[0], NEW[0], Row(3, "y", 9), NEW[2]], "1 keys without"),
        ([OLD[0], Row(2, "x", 7, 1), NEW[1], NEW[2]], "1 keys without"),
        ([OLD[0], Row(2, "x", 7, 0), NEW[1], NEW[2]], "1 keys without"),
        ([OLD[0], Row(2, "other", 7, 3), NEW[1], NEW[2]], "retracts have other values"),
        ([OLD[0], *NEW, Row(6, "more", 10)], "1 keys without"),
    ],
)
def test_what_a_later_merge_would_miss_is_named(new: list[Row], named: str) -> None:
    (fault,) = faults([(0, NEW), (3, OLD)], [(4, new)], kept=[(5, BELOW)])
    assert re.search(named, fault), fault


def test_a_retract_at_the_bottom_is_one_too_many() -> None:
    (fault,) = faults([(0, NEW), (3, OLD)], [(5, [OLD[0], *NEW])])
    assert "2 keys without the sequence number or kind" in fault


def test_rows_that_are_gone_altogether_are_named() -> None:
    (fault,) = faults([(0, OLD)], [])
    assert fault == ("new files: 3 keys without the sequence number or kind that a merge leaves")


def test_a_row_merged_of_several_has_the_last_number_that_counts() -> None:
    ignoring = {**PLAIN, "merge-engine": "partial-update", "ignore-delete": "true"}
    files = [(0, [Row(1, "b", 7, 3)]), (3, [Row(1, "a", 5)])]
    assert faults(files, [(5, [Row(1, "a", 5)])], options=ignoring) == []
    assert len(faults(files, [(5, [Row(1, "a", 7)])], options=ignoring)) == 1
    summing = {**PLAIN, "merge-engine": "aggregation"}
    assert faults(files, [(5, [Row(1, None, 7)])], options=summing) == []


def test_a_retract_made_of_several_rows_is_not_proven() -> None:
    files = [(0, [Row(1, "b", 7, 3)]), (3, [Row(1, "a", 5)])]
    assert faults(files, [], options=UPDATES) == []
    (fault,) = faults(files, [(4, [Row(1, "b", 7, 3)])], kept=[(5, BELOW)], options=UPDATES)
    assert fault.startswith("several rows were merged to a retract that stays")


@settings(max_examples=examples(40))
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=5), min_size=1, max_size=4),
    st.booleans(),
)
def test_the_newest_row_of_each_key_is_right_and_no_other(runs: list[list[tuple[int, int]]], below: bool) -> None:
    replaced, newest, sequence = list[tuple[int, list[Row]]](), dict[int, Row](), 10
    for run in runs:
        rows = [Row(key, "v", sequence + n, kind) for n, (key, kind) in enumerate(sorted(dict(run).items()))]
        sequence += len(rows)
        newest |= {row.key: row for row in rows}
        replaced += [(0, rows)] if rows else []
    left = [row for _, row in sorted(newest.items()) if below or row.kind not in RETRACTS]
    kept: Files = [(5, [Row(0), Row(9)])] if below else []
    assert faults(replaced, [(4, left)] if left else [], kept=kept) == []
    for place, row in enumerate(left):
        for wrong in ([], [row._replace(sequence=row.sequence - 1)], [row._replace(kind=(row.kind + 1) % 4)]):
            new = [*left[:place], *wrong, *left[place + 1 :]]
            if new != left:
                assert faults(replaced, [(4, new)] if new else [], kept=kept)
