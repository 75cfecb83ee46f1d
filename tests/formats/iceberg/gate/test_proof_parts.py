"""Parts of a partition's proof: each data file in one, and what every part reads again is not more than the data."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.iceberg.content_made import equality_of, file_of, positions_of, schema_of

from nightkeep.formats.iceberg.gate.proof_parts import pieces
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.model import UnitKey

SCHEMA = schema_of([("id", "long")])
PART = 256


def unit_of(
    files: Sequence[ContentFile], equality: Sequence[ContentFile] = (), positional: Sequence[ContentFile] = ()
) -> IcebergUnit:
    return IcebergUnit(UnitKey("", None), {}, 0, (), tuple(files), tuple(positional), tuple(equality), SCHEMA)


def data_of(count: int, sequence: int = 1, *, size: int = PART) -> list[ContentFile]:
    return [file_of(f"d{number}", sequence, bytes=size) for number in range(count)]


def parts_of(unit: IcebergUnit) -> list[IcebergUnit]:
    return [base for base, _ in pieces(unit, unit, part_bytes=PART)]


def test_small_deletes_are_read_for_every_part() -> None:
    parts = parts_of(unit_of(data_of(16), [equality_of("e", 2, bytes=PART // 2)]))
    assert [len(part.files) for part in parts] == [1] * 16
    assert all(len(part.equality) == 1 for part in parts)


@pytest.mark.parametrize("deletes", [equality_of("e", 2, bytes=4 * PART), positions_of("p", 2, bytes=4 * PART)])
def test_deletes_larger_than_a_part_make_parts_larger(deletes: ContentFile) -> None:
    equality, positional = ([], [deletes]) if deletes.path == "/p" else ([deletes], [])
    assert [len(part.files) for part in parts_of(unit_of(data_of(16), equality, positional))] == [4] * 4


def test_deletes_that_hold_for_no_file_make_parts_no_larger() -> None:
    unit = unit_of(data_of(16, sequence=2), [equality_of("e", 2, bytes=4 * PART)])
    assert [(len(part.files), len(part.equality)) for part in parts_of(unit)] == [(1, 0)] * 16


def test_the_side_with_more_deletes_decides() -> None:
    base = unit_of(data_of(16), [equality_of("e", 2, bytes=8 * PART)])
    for sides in ((base, unit_of(data_of(16))), (unit_of(data_of(16)), base)):
        assert len(pieces(*sides, part_bytes=PART)) == 2


sizes = st.integers(1, 3 * PART)
sequences = st.integers(1, 5)
equalities = st.lists(st.tuples(sequences, sizes), max_size=4).map(
    lambda made: [equality_of(f"e{n}", sequence, bytes=size) for n, (sequence, size) in enumerate(made)]
)


@st.composite
def units(draw: st.DrawFn) -> IcebergUnit:
    files = [file_of(f"d{n}", draw(sequences), bytes=draw(sizes)) for n in sorted(draw(st.sets(st.integers(0, 20))))]
    return unit_of(files, draw(equalities))


@given(units(), units())
def test_parts_add_up_and_have_the_deletes_that_hold_for_their_files(base: IcebergUnit, candidate: IcebergUnit) -> None:
    parts = pieces(base, candidate, part_bytes=PART)

    for side, unit in enumerate((base, candidate)):
        assert sorted(file.path for part in parts for file in part[side].files) == sorted(f.path for f in unit.files)
        for part in parts:
            needed = {
                delete.path
                for delete in unit.equality
                for file in part[side].files
                if file.sequence_number < delete.sequence_number
            }
            kept = {delete.path for delete in part[side].equality}
            assert kept == needed or (len(parts) == 1 and kept >= needed)
        # Beside a first time, deletes take no more reading than data.
        read = sum(delete.bytes for part in parts for delete in part[side].equality)
        data = max(sum(file.bytes for file in unit.files) for unit in (base, candidate))
        assert read <= sum(delete.bytes for delete in unit.equality) + data
    seen = [{file.path for unit in part for file in unit.files} for part in parts]
    assert sum(map(len, seen)) == len(set().union(*seen))
