"""Columns of placed files are what a look at each file gives, also of some of them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile, PlacedFiles
from nightkeep.model.file_columns import FileColumns, FilesInColumns, columns_of, name_ranks, names_of, taken


def content(
    path: str, rows: int, *, kind: FileContent = FileContent.DATA, referenced: str | None = None
) -> ContentFile:
    stored = "puffin" if rows % 2 and referenced else "parquet"
    return ContentFile(kind, path, path[1:], stored, 0, (), rows, rows * 10, 1, 1, 1, referenced=referenced)


@st.composite
def placed(draw: st.DrawFn) -> tuple[PlacedFile, ...]:
    found = []
    for name in draw(st.lists(st.text("abc", min_size=1, max_size=3), max_size=8, unique=True)):
        rows, path = draw(st.integers(0, 9)), f"/t/{name}"
        held = tuple(
            content(f"{path}-{n}", draw(st.integers(0, 9)), kind=FileContent.POSITION_DELETES, referenced=target)
            for n, target in enumerate(draw(st.lists(st.sampled_from([path, "/t/other", None]), max_size=3)))
        )
        found.append(PlacedFile(content(path, rows), held, draw(st.integers(0, 2))))
    return tuple(found)


def lists(columns: FileColumns) -> list[list[int]]:
    return [each.tolist() for each in (columns.bytes, columns.rows, columns.deleted_rows, columns.deletes)]


@settings(max_examples=examples(50), deadline=None)
@given(files=placed(), data=st.data())
def test_columns_are_those_of_each_file(files: tuple[PlacedFile, ...], data: st.DataObject) -> None:
    stored = PlacedFiles(files, columns_of(files))
    places = np.asarray(data.draw(st.lists(st.integers(0, len(files) - 1), max_size=9) if files else st.just([])), int)
    some = taken(stored, places)
    assert isinstance(stored, FilesInColumns) and isinstance(some, FilesInColumns)
    for found, expected in ((stored, files), (some, tuple(files[place] for place in places))):
        assert tuple(found) == tuple(found[:]) == expected and len(found) == len(expected)
        assert lists(columns_of(found)) == lists(columns_of(expected))
        assert names_of(found) == [file.name for file in expected]
    assert name_ranks(stored).tolist() == [sorted(f.name for f in files).index(f.name) for f in files]


@given(files=placed())
def test_deleted_rows_are_those_of_deletes_of_this_file_only(files: tuple[PlacedFile, ...]) -> None:
    for file in files:
        own = [delete for delete in file.held if delete.referenced == file.file.path]
        most = file.rows if any(delete.is_vector for delete in own) else max(0, file.rows - 1)
        assert file.deleted_rows == min(sum(delete.rows for delete in own), most)
