"""Keys -> the rows they replace below a level: the twin looks at every row of every level."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import MadeBucket, Row, buckets
from tests.support.examples import examples

from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.rewrite.lookup import find_replaced


def replaced(made: MadeBucket, keys: list[int], below: int) -> set[tuple[int, str, int]]:
    """Key, file and position of what `find_replaced` finds."""
    wanted = pa.table({"_KEY_k": pa.array(keys, pa.int32())})
    hits = find_replaced(made.storage, made.bucket(), wanted, below=below, marked=made.vectors())
    return {
        (keys[row], hit.file.name, int(at)) for hit in hits for row, at in zip(hit.wanted, hit.positions, strict=True)
    }


def twin(made: MadeBucket, keys: list[int], below: int) -> set[tuple[int, str, int]]:
    found = set()
    for key in keys:
        for level in sorted({file.level for file in made.files if file.level > below}):
            here = {
                (key, file.name, at)
                for file in made.files
                for at, row in made.live(file.name)
                if file.level == level and row.key == key
            }
            if here:
                found |= here
                break
    return found


@settings(max_examples=examples(60))
@given(buckets(), st.sets(st.integers(-1, 10)), st.sampled_from([0, 3, 4]))
def test_the_first_level_that_shows_a_key_gives_it_up(made: MadeBucket, keys: set[int], below: int) -> None:
    assert replaced(made, sorted(keys), below) == twin(made, sorted(keys), below)


def test_a_marked_row_does_not_end_the_search() -> None:
    made = MadeBucket()
    lower = made.add(5, [Row(1), Row(2)])
    upper = made.add(4, [Row(1), Row(3)], hidden=[0])
    assert replaced(made, [1, 2, 3], 0) == {(1, lower, 0), (2, lower, 1), (3, upper, 1)}


def test_the_higher_of_two_levels_is_found() -> None:
    made = MadeBucket()
    made.add(5, [Row(1)])
    upper = made.add(4, [Row(1)])
    assert replaced(made, [1], 0) == {(1, upper, 0)}


def test_row_groups_without_a_wanted_key_are_left_and_positions_count_them() -> None:
    made = MadeBucket()
    name = made.add(5, [Row(key) for key in range(0, 40, 2)], group_rows=3)
    assert replaced(made, [1, 14, 15, 38], 0) == {(14, name, 7), (38, name, 19)}


def test_row_groups_without_statistics_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = MadeBucket()
    name = made.add(5, [Row(key) for key in range(6)], group_rows=2)
    monkeypatch.setattr(PaimonFileReader, "edges", lambda self, column, group: None)
    assert replaced(made, [1, 4], 0) == {(1, name, 1), (4, name, 4)}
