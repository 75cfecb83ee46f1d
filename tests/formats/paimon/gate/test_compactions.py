"""What a compaction shows again: each of its three promises, kept and broken."""

from typing import Any

import pytest
from pyroaring import BitMap
from tests.formats.paimon.made_bucket import MadeBucket, Row

from nightkeep.formats.paimon.deletes.vectors import BitmapKind, encode_vectors
from nightkeep.formats.paimon.gate.compactions import BucketChange, Compaction, Vectors, shown_again


def vectors(made: MadeBucket, file: str, marked: dict[str, set[int]], *, counted: bool) -> Vectors:
    data, ranges = encode_vectors([(name, BitMap(at)) for name, at in marked.items()], BitmapKind.BITMAP32)
    made.held.files[f"index/{file}"] = data
    named = {r.data_file: r if counted else type(r)(r.data_file, r.offset, r.length, None) for r in ranges}
    return Vectors(file, named)


def named(files: dict[str, tuple[int, int]]) -> dict[str, Any]:
    return {name: {"_ROW_COUNT": rows, "_LEVEL": level} for name, (rows, level) in files.items()}


def details(
    removed: dict[str, tuple[int, int]],
    added: dict[str, tuple[int, int]],
    *,
    before: dict[str, set[int]],
    after: dict[str, set[int]] | None = None,
    live: set[str] = frozenset(),  # type: ignore[assignment]
    counted: bool = True,
) -> list[tuple[str, str | None]]:
    made = MadeBucket()
    made.add(5, [Row(1)])
    old = vectors(made, "index-1", before, counted=counted)
    new = old if after is None else vectors(made, "index-2", after, counted=counted)
    change = BucketChange(named(removed), named(added))
    compaction = Compaction(made.storage, made.bucket(), change, old, new, live | added.keys())
    return [(shown.detail.partition(": ")[2], shown.marked) for shown in shown_again(compaction)]


@pytest.mark.parametrize("counted", [True, False])
def test_it_writes_no_more_rows_than_its_inputs_show(counted: bool) -> None:
    inputs, hidden = {"a": (10, 5), "b": (5, 4)}, {"a": {1, 2}, "b": {0}}
    assert details(inputs, {"c": (12, 5)}, before=hidden, counted=counted) == []
    assert details(inputs, {"c": (13, 5)}, before=hidden, counted=counted) == [
        ("13 rows were written of 2 files which show 12, 3 being hidden by deletion vectors", None)
    ]


@pytest.mark.parametrize("counted", [True, False])
def test_it_unhides_no_row_of_a_file_that_it_keeps(counted: bool) -> None:
    def kept(after: set[int], level: int = 4) -> list[tuple[str, str | None]]:
        return details(
            {"a": (1, level)}, {}, before={"kept": {1, 2}}, after={"kept": after}, live={"kept"}, counted=counted
        )

    assert kept({1, 2, 3}) == []
    assert kept({1}) == [("1 rows of kept are no longer hidden by its deletion vector", None)]
    assert kept(set()) == [("2 rows of kept are no longer hidden by its deletion vector", None)]
    # As many marks, of other rows: told apart by their positions, unless level 0 was lifted.
    assert kept({1, 3}) == [("1 rows of kept are no longer hidden by its deletion vector", None)]
    assert kept({1, 3}, level=0) == []


def test_a_file_that_it_removes_or_that_is_gone_needs_no_marks() -> None:
    assert details({"a": (3, 4)}, {}, before={"a": {1}}, after={"b": {1}}, live={"b"}) == []
    assert details({"a": (3, 4)}, {}, before={"a": {1}}, after={"a": {1, 2}}) == []
    assert details({}, {}, before={"gone": {1}}, after={"b": {1}}, live={"b"}) == []


@pytest.mark.parametrize("counted", [True, False])
def test_it_marks_rows_of_files_that_exist(counted: bool) -> None:
    def marked(after: set[int]) -> list[tuple[str, str | None]]:
        return details({}, {}, before={"gone": {1}}, after={"gone": after}, live={"other"}, counted=counted)

    assert marked({1}) == []
    assert marked({1, 2, 3}) == [("2 rows were marked as deleted in gone, which is gone", "gone")]


def test_vectors_that_stay_one_file_are_not_compared() -> None:
    assert details({"a": (1, 4)}, {}, before={"gone": {1}}, live=set()) == []
