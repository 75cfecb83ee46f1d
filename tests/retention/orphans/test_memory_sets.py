"""MemorySets against sets of Python, one name at a time, over random listings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightkeep.model import Address
from nightkeep.protocol.table_files import FILES, FileKind, Reach, Retention, Root, TableFiles, TableFolder, files_table
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sets import ORPHANS, FileTotals, TooManyNames
from nightkeep.storage import ListedFile, LocalStorage

FOLDERS = ("", "a", "a/b", "t", "a/_nightkeep", "_nightkeep")
KINDS = (
    FileKind("odd", r"(?:.*/)?[ac]\d?"),
    FileKind("data", r"(?:[^/]+/)*[^/]*x[^/]*"),
    FileKind("late", r"(?:.*/)?[a-d]"),
)
FOREIGN = (r"(.+)/log/[^/]*", r"((?:[^/]+/)*q)/sign")
CUTOFF = 10

_part = st.sampled_from(["a", "b", "t", "q", "log", "_nightkeep", "x y", "\u00e9\n", "%61"])
_last = st.sampled_from(["a", "c1", "x", "x1", "b\n", "sign", "d", "\U0001f427x", "\udc80x"])
_names = st.builds(lambda folders, last: "/".join([*folders, last]), st.lists(_part, max_size=3), _last)
_files = st.lists(st.builds(ListedFile, _names, st.integers(0, 3), st.integers(8, 12)), unique_by=lambda s: s.name)
_texts = _names.filter(lambda name: name.isprintable() or "\n" in name)
_live = st.lists(st.tuples(_texts, st.one_of(st.none(), st.integers(0, 3)), st.booleans(), st.booleans()))
_places = st.lists(
    st.builds(TableFolder, st.sampled_from(FOLDERS), st.lists(st.sampled_from(KINDS)).map(tuple)),
    min_size=1,
    unique_by=lambda place: place.folder,
).map(tuple)


@dataclass(frozen=True)
class _Listed(LocalStorage):
    """A store of a listing alone."""

    files: tuple[ListedFile, ...]

    def walk(self, folder: str) -> Iterator[Sequence[ListedFile]]:
        for file in self.files:
            if _below(folder, file.name) is not None:
                yield [file]

    def stat(self, name: str) -> ListedFile | None:
        return next((file for file in self.files if file.name == name), None)


@dataclass(frozen=True)
class _Table:
    """A table whose every root reaches what its task says: (name, bytes, needed)."""

    of: TableFiles

    def table_files(self) -> TableFiles:
        return self.of

    def roots(self, retention: Retention) -> tuple[Root, ...]:
        raise NotImplementedError

    def reach(self, root: Root) -> Reach:
        return Reach(files_table([]), (root.id,))

    def live(self, source: object) -> Iterator[pa.RecordBatch]:
        for name, size, needed in TASKS[str(source)]:
            yield from files_table([name], sizes=[size], needed=needed).to_batches()


TASKS: dict[str, list[tuple[str, int | None, bool]]] = {}


def _below(folder: str, name: str) -> str | None:
    if not folder:
        return name
    return name.removeprefix(f"{folder}/") if name.startswith(f"{folder}/") else None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class _Twin:
    """What is asked of sets, spelled out."""

    table_files: TableFiles

    def place(self, name: str) -> TableFolder | None:
        found = [place for place in self.table_files.places if _below(place.folder, name) is not None]
        return max(found, key=lambda place: len(place.folder), default=None)

    def kept(self, name: str) -> bool:
        home = self.table_files.home
        return _below(f"{home}/_nightkeep" if home else "_nightkeep", name) is not None

    def kind(self, name: str) -> str | None:
        place = self.place(name)
        assert place is not None
        below = _below(place.folder, name)
        return next((kind.name for kind in place.kinds if re.fullmatch(kind.pattern, str(below))), None)

    def nested(self, names: Sequence[str]) -> set[tuple[TableFolder, str]]:
        found = set()
        for name in names:
            place = self.place(name)
            assert place is not None
            for pattern in self.table_files.foreign:
                if match := re.fullmatch(pattern, str(_below(place.folder, name))):
                    found.add((place, f"{place.folder}/{match[1]}" if place.folder else match[1]))
        return found

    def listed(self) -> list[ListedFile]:
        """Files with a name that is text, of the table_files, but for what is ours."""
        assert isinstance(self.table_files.storage, _Listed)
        return [
            file
            for file in self.table_files.storage.files
            if _is_text(file.name) and self.place(file.name) and not self.kept(file.name)
        ]

    def ours(self) -> list[ListedFile]:
        listed = self.listed()
        nested = self.nested([file.name for file in listed])
        return [
            file
            for file in listed
            if not any(self.place(file.name) == p and _below(folder, file.name) is not None for p, folder in nested)
        ]

    def is_live(self, name: str, live: set[str]) -> bool:
        bare = {PurePosixPath(other).name for other in live}
        return name in live or (self.table_files.by_bare_name and PurePosixPath(name).name in bare)


def _doubled(going: Sequence[ListedFile], others: Sequence[tuple[str, int | None]]) -> tuple[int, bool]:
    """How many have the last part, and the size if it is known, of another that is live; and whether any has."""
    found = [
        file
        for file in going
        if any(_last_part(file.name) == _last_part(name) and size in (None, file.bytes) for name, size in others)
    ]
    return len(found), bool(found)


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


@settings(deadline=None)
@given(_files, _live, _places, st.sampled_from(FOLDERS), st.booleans(), st.sampled_from([(), ("x",), ("a", "q/")]))
def test_sets_agree_with_their_twin(
    files: list[ListedFile],
    live: list[tuple[str, int | None, bool, bool]],
    places: tuple[TableFolder, ...],
    home: str,
    by_bare_name: bool,
    named: tuple[str, ...],
) -> None:
    store = _Listed("/nowhere", tuple(files))
    table_files = TableFiles(Address("toy", "toy", "toy"), store, home, places, FOREIGN, by_bare_name=by_bare_name)
    live = [row for row in live if _is_text(row[0])]
    sets, table, twin = MemorySets(), _Table(table_files), _Twin(table_files)
    sets.list(table_files)
    for expected in (True, False):
        TASKS[f"{expected}"] = [(name, size, needed) for name, size, needed, early in live if early == expected]
        sets.live(table, [Root(f"{expected}", None)], expected=expected)
    counted = sets.settle(cutoff_ms=CUTOFF, named=named)

    names, ours = {row[0] for row in live}, twin.ours()
    dead = [file for file in ours if not twin.is_live(file.name, names)]
    old = [file for file in dead if twin.kind(file.name) and file.modified_ms < CUTOFF]
    going = [file for file in old if not named or any(part in file.name for part in named)]
    found = [row for batch in sets.orphans() for row in batch.to_pylist()]
    assert found == [
        {"name": file.name, "bytes": file.bytes, "modified_ms": file.modified_ms, "kind": twin.kind(file.name)}
        for file in sorted(going, key=lambda file: file.name.encode())
    ]
    assert all(batch.schema == ORPHANS for batch in sets.orphans())

    unreadable = [file for file in files if not _is_text(file.name) and twin.place(file.name)]
    assert counted.listed == _tally([*ours, *unreadable])
    assert counted.live == _tally([file for file in ours if twin.is_live(file.name, names)])
    assert counted.unknown == _tally([*unreadable, *(file for file in dead if not twin.kind(file.name))])
    assert counted.young == _tally([file for file in dead if twin.kind(file.name) and file.modified_ms >= CUTOFF])
    assert counted.orphans == _tally(going) == sum(counted.by_kind.values(), FileTotals())
    sizes = {file.name: file.bytes for file in files if not twin.place(file.name)}
    sizes |= {file.name: file.bytes for file in twin.listed()}
    needed = {(name, size) for name, size, needed, early in live if needed and early}
    assert counted.missing == len({(name, size) for name, size in needed if name not in sizes})
    assert counted.resized == len({(n, s) for n, s in needed if n in sizes and s is not None and s != sizes[n]})
    assert bool(counted.examples) == bool(counted.missing + counted.resized)
    unlisted = [(name, size) for name, size, *_ in live if name not in {file.name for file in twin.listed()}]
    assert (counted.doubled, bool(counted.doubles)) == _doubled(going, unlisted)


@settings(deadline=None)
@given(_files, _live, _live, _places, st.booleans())
def test_what_roots_reached_agrees_with_its_twin(
    files: list[ListedFile],
    gone: list[tuple[str, int | None, bool, bool]],
    live: list[tuple[str, int | None, bool, bool]],
    places: tuple[TableFolder, ...],
    by_bare_name: bool,
) -> None:
    store = _Listed("/nowhere", tuple(files))
    table_files = TableFiles(Address("toy", "toy", "toy"), store, "", places, FOREIGN, by_bare_name=by_bare_name)
    sets, table, twin = MemorySets(), _Table(table_files), _Twin(table_files)
    TASKS["gone"] = [row[:3] for row in gone if _is_text(row[0])]
    TASKS["live"] = [row[:3] for row in live if _is_text(row[0])]
    sets.reached(table, [Root("gone", None)])
    sets.live(table, [Root("live", None)], expected=False)
    counted = sets.settle(cutoff_ms=None)
    names = {row[0] for row in TASKS["live"]}
    stored = {file.name: file for file in files}
    going = sorted(
        name
        for name in {row[0] for row in TASKS["gone"]} & stored.keys()
        if twin.place(name) and not twin.kept(name) and twin.kind(name) and not twin.is_live(name, names)
    )
    assert [name for batch in sets.orphans() for name in batch["name"].to_pylist()] == going
    assert counted.orphans == _tally([stored[name] for name in going])
    assert (counted.missing, counted.resized) == (0, 0)
    outside = [(name, size) for name, size, _ in TASKS["live"] if not twin.place(name)]
    assert (counted.doubled, bool(counted.doubles)) == _doubled([stored[name] for name in going], outside)
    again = sets.settle(cutoff_ms=None)
    assert again == counted


def test_a_source_that_roots_on_both_sides_name_is_live() -> None:
    """A manifest that an expired snapshot shares with one that stays keeps its files."""
    file = ListedFile("x", 1, 1)
    table_files = TableFiles(Address("toy", "t", "t"), _Listed("/nowhere", (file,)), "", (TableFolder("", KINDS),))
    TASKS["shared"] = [("x", 1, True)]
    sets = MemorySets()
    sets.reached(_Table(table_files), [Root("shared", None)])
    assert sets.settle(cutoff_ms=None).orphans.files == 1
    sets.live(_Table(table_files), [Root("shared", None)], expected=False)
    assert sets.settle(cutoff_ms=None).orphans.files == 0


def test_too_many_names_for_one_process_are_reported() -> None:
    files = tuple(ListedFile(f"x{n}", 1, 1) for n in range(11))
    table_files = TableFiles(Address("toy", "t", "t"), _Listed("/nowhere", files), "", (TableFolder("", KINDS),))
    MemorySets(limit=11).list(table_files)
    with pytest.raises(TooManyNames, match="11 names, expected at most 10"):
        MemorySets(limit=10).list(table_files)


def test_candidates_come_first() -> None:
    with pytest.raises(ValueError, match="no candidates yet"):
        MemorySets().settle(cutoff_ms=1)
    assert files_table([]).schema == FILES


def _tally(files: Sequence[ListedFile]) -> FileTotals:
    return FileTotals(len(files), sum(file.bytes for file in files))
