"""What the gate takes for a bucket's rows: the twin keeps the newest row of each key in a dict."""

import pytest
from hypothesis import given, settings
from tests.formats.paimon.made_bucket import MadeBucket, Row, buckets
from tests.support.examples import examples

from nightkeep.formats.paimon.gate.scan import count_tied_keys, rows, survivors
from nightkeep.model import View

BY_VALUE = {"sequence.field": "v"}


def places(made: MadeBucket, view: View) -> set[tuple[str, int]]:
    found = survivors(made.storage, made.bucket(), view)
    return {(name, at) for name, positions in found.items() for at in positions}


@settings(max_examples=examples(40))
@given(buckets())
def test_merged_shows_the_newest_row_of_each_key(made: MadeBucket) -> None:
    assert places(made, View.MERGED) == set(made.merged().values())


@settings(max_examples=examples(40))
@given(buckets(options=BY_VALUE))
def test_a_sequence_field_goes_before_sequence_numbers(made: MadeBucket) -> None:
    assert places(made, View.MERGED) == set(made.merged(by_value=True).values())


@settings(max_examples=examples(40))
@given(buckets())
def test_raw_shows_what_vectors_leave_above_level_0(made: MadeBucket) -> None:
    upper = [file.name for file in made.files if file.level > 0]
    assert places(made, View.RAW) == {(name, at) for name in upper for at, _ in made.live(name)}


@settings(max_examples=examples(25))
@given(buckets())
def test_rows_are_those_at_the_positions(made: MadeBucket) -> None:
    bucket = made.bucket()
    found = [
        (row["k"], row["v"])
        for batch in rows(made.storage, bucket, survivors(made.storage, bucket, View.MERGED))
        for row in batch.to_pylist()
    ]
    assert sorted(found, key=repr) == sorted(
        ((k, made.rows[n][at].value) for k, (n, at) in made.merged().items()), key=repr
    )


def test_descending_sequence_fields_keep_the_least_and_nulls_lose() -> None:
    made = MadeBucket({**BY_VALUE, "sequence.field.sort-order": "descending"})
    least = made.add(5, [Row(1, "a", 1), Row(2, "b", 2), Row(3, None, 9)])
    made.add(0, [Row(1, "b", 5), Row(2, None, 6), Row(3, "z", 3)])
    assert places(made, View.MERGED) == {(least, 0), (least, 1), ("data-1.parquet", 2)}


@pytest.mark.parametrize("option", ["changelog-producer", "force-lookup"])
def test_where_compactions_look_up_the_lowest_level_counts(option: str) -> None:
    """What a key has deeper went into it, whatever the sequence numbers say."""
    value = {"changelog-producer": "lookup", "force-lookup": "true"}[option]
    made = MadeBucket({"deletion-vectors.enabled": "false", option: value})
    made.add(5, [Row(1, "deep", 9), Row(2, "deep", 1), Row(3, "deep", 1), Row(4, "deep", 1)])
    low = made.add(3, [Row(1, "low", 2), Row(3, "low", 2, 3)])
    fresh = made.add(0, [Row(1, "late", 1), Row(2, "new", 3)])
    assert places(made, View.MERGED) == {(low, 0), (fresh, 1), ("data-0.parquet", 3)}


def test_of_equal_sequence_numbers_the_newest_file_wins() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "old", 7)])
    newest = made.add(0, [Row(1, "new", 7)])
    assert places(made, View.MERGED) == {(newest, 0)}


def test_keys_with_two_newest_rows_are_counted() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "a", 7), Row(2, "a", 8), Row(3, "a", 1), Row(4, "a", 9)], hidden=[3])
    made.add(0, [Row(1, "b", 7), Row(2, "b", 9), Row(4, "b", 9)])
    made.add(0, [Row(3, "b", 0), Row(5, "b", 20)])
    assert count_tied_keys(made.storage, made.bucket()) == 1


def test_a_tie_below_the_newest_row_does_not_matter() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "a", 7)])
    made.add(4, [Row(1, "b", 7)])
    made.add(0, [Row(1, "c", 8)])
    assert count_tied_keys(made.storage, made.bucket()) == 0


def test_an_order_that_decides_is_no_tie() -> None:
    made = MadeBucket(BY_VALUE)
    made.add(5, [Row(1, "a", 7), Row(2, "a", 7)])
    made.add(0, [Row(1, "b", 7), Row(2, "a", 7)])
    assert count_tied_keys(made.storage, made.bucket()) == 1


def test_a_bucket_without_files_has_no_rows() -> None:
    made = MadeBucket()
    assert places(made, View.MERGED) == places(made, View.RAW) == set()
    assert count_tied_keys(made.storage, made.bucket()) == 0
