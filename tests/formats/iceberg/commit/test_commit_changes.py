"""Which position deletes may hold for which data files: against a twin that looks at every pair, and by few looks."""

from collections.abc import Callable, Mapping, Sequence, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.formats.iceberg.content_made import file_of, positions_of, schema_of, vector_of

from nightkeep.formats.iceberg.commit.commit_changes import Edits, retired_positional
from nightkeep.formats.iceberg.gate import scan
from nightkeep.formats.iceberg.metadata import positional_deletes
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.delete_index import index_deletes
from nightkeep.formats.iceberg.metadata.pending_changes import DeleteTarget, IcebergEdit
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity, positional_of
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite import hidden_rows
from nightkeep.formats.iceberg.rewrite.hidden_rows import marked_files, positional_rows
from nightkeep.model import Intent, Operation, UnitKey
from nightkeep.storage import LocalStorage, Storage

STORAGE = LocalStorage("/")
PATH_FIELD = 2147483546
"""The field id of file_path (spec, "Reserved Field IDs")."""


def unit_of(files: Sequence[ContentFile], positional: Sequence[ContentFile]) -> IcebergUnit:
    schema = schema_of([("id", "long")])
    return IcebergUnit(UnitKey("", None), {}, 0, (), tuple(files), tuple(positional), (), schema)


def ranged(name: str, sequence: int, low: str | None, high: str | None, *, added: int | None = None) -> ContentFile:
    """Position deletes of data files from `low` to `high`, each None where that is not known."""
    ends = {"lower_bounds": low, "upper_bounds": high}
    raw = {side: {PATH_FIELD: f"/{end}".encode()} for side, end in ends.items() if end is not None}
    return positions_of(name, sequence, raw=raw, file_sequence_number=sequence if added is None else added)


def twin(unit: IcebergUnit) -> Mapping[str, Set[Identity]]:
    """Every data file with every delete (spec, "Scan Planning")."""
    found: dict[str, Set[Identity]] = {}
    for file in unit.files:
        held = [delete for delete in unit.positional if _may_hold(delete, file)]
        vectors = [delete for delete in held if delete.is_vector]
        found[file.path] = {delete.identity for delete in vectors or held}
    return found


def _may_hold(delete: ContentFile, file: ContentFile) -> bool:
    if delete.referenced is not None:
        return delete.referenced == file.path and file.sequence_number <= delete.sequence_number
    low, high = (delete.raw.get(side, {}).get(PATH_FIELD) for side in ("lower_bounds", "upper_bounds"))  # type: ignore[attr-defined]
    within = (low is None or low.decode() <= file.path) and (high is None or file.path <= high.decode())
    old = file.sequence_number <= delete.sequence_number and file.file_sequence_number <= delete.file_sequence_number
    return within and old


letters = st.sampled_from("abcdef")
sequences = st.integers(1, 4)
ends = st.none() | letters | st.sampled_from(["", "bb", "g"])


@st.composite
def units(draw: st.DrawFn) -> IcebergUnit:
    files = [
        file_of(name, draw(sequences), file_sequence_number=draw(sequences))
        for name in draw(st.sets(letters).map(sorted))
    ]
    deletes = [
        ranged(f"r{number}", draw(sequences), draw(ends), draw(ends), added=draw(sequences))
        for number in range(draw(st.integers(0, 6)))
    ]
    deletes += [positions_of(f"p{number}", draw(sequences), draw(letters)) for number in range(draw(st.integers(0, 3)))]
    for number, name in enumerate(draw(st.sets(letters, max_size=2).map(sorted))):
        deletes.append(vector_of("v", draw(sequences), name, number))
    return unit_of(draw(st.permutations(files)), draw(st.permutations(deletes)))


@given(units())
def test_deletes_are_those_that_a_look_at_every_pair_finds(unit: IcebergUnit) -> None:
    assert positional_of(unit) == twin(unit)


@given(units(), st.sets(letters), st.sets(st.integers(0, 5)))
def test_what_holds_for_no_file_that_is_left_goes(unit: IcebergUnit, removed: set[str], folded: set[int]) -> None:
    gone = tuple(file for file in unit.files if file.path[1:] in removed)
    targets = [
        DeleteTarget(file.path, frozenset((f"/r{number}", None) for number in folded))
        for file in unit.files[:2]
        if file not in gone
    ]
    edit = IcebergEdit(1, Intent(Operation.OPTIMIZE), removed=gone, targets=tuple(targets))

    found = [delete.identity for delete in retired_positional(unit, Edits((edit,), (unit.key,)))]

    left = {(file.path, identity) for file in unit.files if file not in gone for identity in twin(unit)[file.path]} - {
        (target.path, identity) for target in targets for identity in target.folded
    }
    waiting = {identity for _, identity in left}
    assert found == [delete.identity for delete in unit.positional if delete.identity not in waiting]


MANY = 150


def apart(count: int) -> list[ContentFile]:
    """Each of two data files beside each other."""
    return [ranged(f"r{n}", 9, f"d{2 * n:04}", f"d{2 * n + 1:04}") for n in range(count)]


def everywhere(count: int) -> list[ContentFile]:
    """Of all data files, and without bounds."""
    return [ranged(f"r{n}", 9, "d" if n % 2 else None, "e" if n % 3 else None) for n in range(count)]


Shared = Callable[[int], list[ContentFile]]


@pytest.mark.parametrize("deletes", [apart, everywhere])
def test_many_files_and_many_deletes_of_several_are_not_compared_each_with_each(
    monkeypatch: pytest.MonkeyPatch, deletes: Shared
) -> None:
    unit = unit_of([file_of(f"d{n:04}", n % 9) for n in range(2 * MANY)], deletes(MANY))
    looks = []
    look = positional_deletes._may_name
    monkeypatch.setattr(positional_deletes, "_may_name", lambda *pair: looks.append(pair) or look(*pair))

    found = positional_of(unit)

    assert found == twin(unit)
    assert len(looks) <= 2 * MANY
    marked = marked_files(unit, unit.files)
    assert len({id(each.held) for each in marked}) == (MANY if deletes is apart else 1)


def by_gate(unit: IcebergUnit) -> None:
    index = index_deletes(unit.positional, ())
    assert not [*scan._by_position(STORAGE, index, unit.files)]


def by_rewrite(unit: IcebergUnit) -> None:
    assert not any(positional_rows(STORAGE, marked_files(unit, unit.files)).values())


@pytest.mark.parametrize("read", [by_gate, by_rewrite])
def test_paths_are_not_held_for_every_delete(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[IcebergUnit], None]
) -> None:
    asked: list[tuple[ContentFile, Set[str]]] = []

    def read_positions(storage: Storage, delete: ContentFile, wanted: Set[str]) -> Mapping[str, BitMap64]:
        asked.append((delete, wanted))
        return {}

    for module in (scan, hidden_rows):
        monkeypatch.setattr(module, "read_positions", read_positions)
    files = [file_of(f"d{n:04}") for n in range(MANY)]

    read(unit_of(files, everywhere(MANY)))

    assert sorted(delete.path for delete, _ in asked) == sorted(delete.path for delete in everywhere(MANY))
    assert all(wanted == {file.path for file in files} for _, wanted in asked)
    assert len({id(wanted) for _, wanted in asked}) == 1
