"""Which deletes hold for which data file: an index against a twin that asks the spec's sentences of every pair."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.iceberg.content_made import equality_of, file_of, positions_of, schema_of, vector_of

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, Entry, FileContent, Status
from nightkeep.formats.iceberg.metadata.delete_index import DeleteIndex, index_deletes
from nightkeep.formats.iceberg.metadata.units import Gathered, PartitionFiles, gather

SCHEMA = schema_of(
    [("id", "long"), ("a", "string"), ("b", "double")],
    [("a", "identity")],
    [],
    [("a", "void"), ("b", "void")],
    [("b", "identity")],
)
"""Specs 1 and 2 have no partitions: what deletes by them holds everywhere."""
PARTITIONS = {0: [("x",), ("y",), (None,)], 1: [()], 2: [(None, None)], 3: [(float("nan"),), (0.0,), (-0.0,)]}

places = st.sampled_from([(spec_id, values) for spec_id, every in PARTITIONS.items() for values in every])
sequences = st.integers(1, 4)


@st.composite
def tables(draw: st.DrawFn) -> list[ContentFile]:
    """Live files of a table that readers would accept."""
    found: list[ContentFile] = []
    for number, ((spec_id, values), sequence) in enumerate(
        draw(st.lists(st.tuples(places, sequences), min_size=1, max_size=6))
    ):
        place = {"spec_id": spec_id, "partition": values}
        found.append(file_of(f"d{number}", sequence, **place))
        if draw(st.booleans()):
            found.append(vector_of("v", draw(st.integers(sequence, 5)), f"d{number}", number, **place))
        for each in draw(st.lists(sequences, max_size=2)):
            found.append(positions_of(f"p{len(found)}", each, f"d{number}", **place))
    for (spec_id, values), sequence, is_equality in draw(
        st.lists(st.tuples(places, sequences, st.booleans()), max_size=6)
    ):
        make = equality_of if is_equality else positions_of
        found.append(make(f"x{len(found)}", sequence, spec_id=spec_id, partition=values))
    return draw(st.permutations(found))


def holds(delete: ContentFile, file: ContentFile, live: Sequence[ContentFile]) -> bool:
    """The spec's rules, one sentence each ("Scan Planning")."""
    same = delete.spec_id == file.spec_id and repr(delete.partition) == repr(file.partition)
    if delete.content is FileContent.EQUALITY_DELETES:
        everywhere = delete.spec_id in (1, 2)
        return file.sequence_number < delete.sequence_number and (same or everywhere)
    if delete.is_vector:
        return delete.referenced == file.path and file.sequence_number <= delete.sequence_number and same
    if any(other.is_vector and holds(other, file, live) for other in live):
        return False
    return delete.referenced in (None, file.path) and file.sequence_number <= delete.sequence_number and same


def positions(index: DeleteIndex, file: ContentFile) -> list[ContentFile]:
    return [delete for delete, paths in index.positions_of([file]) if paths == {file.path}]


def found(place: PartitionFiles, gathered: Gathered, file: ContentFile) -> set[tuple[str, int | None]]:
    index = index_deletes(place.positional, (*place.equality, *gathered.everywhere))
    vector = index.vector_of(file)
    equality = [each for each in index.equality if each.sequence_number > file.sequence_number]
    every = (*positions(index, file), *equality, *([vector] if vector else []))
    assert len(every) == len({each.identity for each in every})
    return {each.identity for each in every}


def entries(files: Sequence[ContentFile]) -> list[Entry]:
    return [Entry(Status.EXISTING, 1, file) for file in files]


@given(tables())
def test_a_delete_holds_where_the_specification_states(live: list[ContentFile]) -> None:
    gathered = gather(SCHEMA, entries(live), snapshot_id=1)
    data = {file.path for file in live if file.content is FileContent.DATA}
    assert {file.path for place in gathered.places for file in place.files} == data
    for place in gathered.places:
        for file in place.files:
            expected = {delete.identity for delete in live if delete.content and holds(delete, file, live)}
            assert found(place, gathered, file) == expected
        index = index_deletes(place.positional, place.equality)
        pairs = sorted((path, delete.identity) for delete, paths in index.positions_of(place.files) for path in paths)
        assert pairs == sorted(
            (file.path, delete.identity)
            for file in place.files
            for delete in live
            if delete.content is FileContent.POSITION_DELETES and not delete.is_vector and holds(delete, file, live)
        )


@given(tables())
def test_every_live_file_has_one_place(live: list[ContentFile]) -> None:
    gathered = gather(SCHEMA, entries(live), snapshot_id=1)
    placed = [file for place in gathered.places for file in (*place.files, *place.positional, *place.equality)]
    assert sorted(file.identity for file in (*placed, *gathered.everywhere)) == sorted(file.identity for file in live)
    for place in gathered.places:
        assert {(file.spec_id, repr(file.partition)) for file in place.files} <= {(place.spec_id, repr(place.values))}


def test_positions_hold_for_the_rows_of_their_own_commit() -> None:
    index = index_deletes([positions_of("p", 3)], [])
    older, same, newer = (file_of("d", sequence) for sequence in (2, 3, 4))
    assert [len(positions(index, file)) for file in (older, same, newer)] == [1, 1, 0]


def test_a_vector_stands_for_all_positions() -> None:
    index = index_deletes([positions_of("p", 9), positions_of("q", 9, "d"), vector_of("v", 1, "d")], [])
    assert positions(index, file_of("d")) == []
    assert [file.name for file in positions(index, file_of("other"))] == ["p"]
    ((delete, paths),) = index.positions_of([file_of("d"), file_of("other")])
    assert (delete.name, paths) == ("p", {"/other"})


def test_two_vectors_of_a_data_file_are_corrupt() -> None:
    vectors = [vector_of("v", 1, "d", 4), vector_of("v", 2, "d", 60)]
    with pytest.raises(CorruptMetadata, match="/d: expected one deletion vector, found /v and /v"):
        index_deletes(vectors, [])
    with pytest.raises(CorruptMetadata, match="one deletion vector"):
        gather(SCHEMA, entries([moved(vector, 1, ()) for vector in vectors]), snapshot_id=1)


def moved(file: ContentFile, spec_id: int, values: tuple[object, ...]) -> ContentFile:
    return replace(file, spec_id=spec_id, partition=values)


def test_a_vector_older_than_its_data_file_is_corrupt() -> None:
    index = index_deletes([vector_of("v", 1, "d")], [])
    with pytest.raises(CorruptMetadata, match="deletion vector in /v: expected a sequence number from 2 on"):
        positions(index, file_of("d", 2))


def test_a_vector_of_no_data_file_is_corrupt() -> None:
    vector = positions_of("v", 1, format="puffin", content_offset=4)
    with pytest.raises(CorruptMetadata, match="expected the data file it is of, found none"):
        index_deletes([vector], [])


@pytest.mark.parametrize("delete", [vector_of("v", 2, "d"), positions_of("p", 2, "d")], ids=["vector", "positions"])
@pytest.mark.parametrize(("spec_id", "values"), [(0, ("y",)), (1, ())])
def test_positional_deletes_of_another_partition_are_corrupt(
    delete: ContentFile, spec_id: int, values: tuple[object, ...]
) -> None:
    live = [file_of("d", spec_id=0, partition=("x",)), moved(delete, spec_id, values)]
    with pytest.raises(CorruptMetadata, match=r"expected the partition of /d, \(0, \('x',\)\), found"):
        gather(SCHEMA, entries(live), snapshot_id=1)


def test_a_file_that_is_live_twice_is_corrupt() -> None:
    live = [file_of("d", spec_id=0, partition=("x",)), file_of("d", 2, spec_id=0, partition=("y",))]
    with pytest.raises(CorruptMetadata, match="/d: expected a file that is live once"):
        gather(SCHEMA, entries(live), snapshot_id=1)


def test_what_this_snapshot_deleted_keeps_its_place_and_what_others_did_does_not() -> None:
    gone = [
        Entry(Status.DELETED, 5, file_of("d", spec_id=0, partition=("x",))),
        Entry(Status.DELETED, 5, equality_of("e", 2, spec_id=1)),
        Entry(Status.DELETED, 4, file_of("c", spec_id=0, partition=("y",))),
    ]
    assert gather(SCHEMA, gone, snapshot_id=5) == Gathered((PartitionFiles(0, ("x",)),), ())


def test_many_files_and_many_deletes_are_indexed_once() -> None:
    """100,000 data files and 10,000 deletes: a look at every pair would take minutes."""
    chance = random.Random(5)
    files = [file_of(f"d{number}", number // 10) for number in range(100_000)]
    positional = [
        *(vector_of("v", 20_000, f"d{number}", number) for number in range(0, 100_000, 50)),
        *(positions_of(f"p{number}", 20_000, f"d{chance.randrange(100_000)}") for number in range(7_000)),
        *(positions_of(f"s{number}", number) for number in range(3)),
    ]
    equality = [equality_of(f"e{number}", 10_000 - number // 1_000) for number in range(1_000)]
    index = index_deletes(positional, equality)
    assert sum(index.vector_of(file) is not None for file in files) == 2_000
    named = [(delete, paths) for delete, paths in index.positions_of(files) if delete.referenced is not None]
    assert 6_500 < len(named) < 7_500
    assert [*index.equality] == sorted(equality, key=lambda each: (each.sequence_number, each.path))
