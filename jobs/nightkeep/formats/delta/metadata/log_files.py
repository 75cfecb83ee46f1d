"""Adds of a version -> columns of its files, all of them checked. A file becomes an object when it is looked at.

Those that columns leave in doubt are made, which raises what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as arrow_compute

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.formats.delta.metadata.add_columns import AddColumns, vector_ids
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, VectorStorage, data_file
from nightkeep.formats.delta.metadata.locations import own_name, storage_name
from nightkeep.formats.delta.metadata.struct_stats import row_counts
from nightkeep.model.arrow_types import Array, ChunkedArray
from nightkeep.model.file_columns import UNKNOWN, FileColumns, Flags, Numbers
from nightkeep.storage.names import MAX_NAME_BYTES

pc: Final[Any] = arrow_compute
"""The stubs know few of the combinations of types."""

_ODD_PATH: Final = r"^/|^[A-Za-z][A-Za-z0-9+.-]*:|[%?#\x00]|(?:^|/)\.{0,2}(?:/|$)"
"""Paths that may differ from the name in storage, or name no file below the table's folder (locations.own_name)."""
_FILES: Final = ("path", "name", "vector")


@dataclass(frozen=True, slots=True, eq=False)
class LogFiles:
    """All live files of a version: those of `adds`, then `others`.

    `files` has the path, the name and the text of the vector's id of each; `columns` has its numbers. `renamed`: some
    file's name in storage is not its path in the log.
    """

    adds: AddColumns
    others: tuple[DeltaDataFile, ...]
    files: pa.Table
    columns: FileColumns
    root: str
    has_vectors: bool
    anywhere: bool
    renamed: bool

    @staticmethod
    def of(adds: AddColumns, loose: Sequence[Raw], *, root: str, has_vectors: bool, anywhere: bool) -> LogFiles:
        """Raises CorruptMetadata and RefusedTable as `data_file`."""
        made = partial(data_file, root=root, has_vectors=has_vectors, anywhere=anywhere)
        others = tuple(map(made, loose))
        columns, doubtful = _columns(adds, has_vectors=has_vectors)
        places = np.flatnonzero(doubtful)
        for place, raw in zip(places.tolist(), adds.bodies(places), strict=True):
            columns.rows[place] = _known(made(raw).rows)
        # One chunk each: Arrow joins the chunks of a column each time that some of its rows are taken.
        paths = _text(adds.paths, [file.path for file in others]).cast(pa.large_string())
        adds = adds.with_paths(paths[: len(adds)])
        names = _names(paths, root, anywhere=anywhere)
        vectors = _text(pc.fill_null(vector_ids(adds.rows), "None"), [str(file.identity[1]) for file in others])
        files = pa.table(dict(zip(_FILES, (paths, paths if names is None else names, vectors), strict=True)))
        renamed = names is not None
        return LogFiles(adds, others, files, _joined(columns, others), root, has_vectors, anywhere, renamed)

    def require_one_name(self, removed: Collection[str]) -> None:
        """Raises CorruptMetadata if two paths in the log name one file. The paths of the files differ.

        Readers would read it as two files, and do not agree on whether a remove of one path removes the other.
        """
        names = self.files.column("name")
        if self.renamed and pc.count_distinct(names).as_py() < len(names):
            _raise_one_name(self.files)
        removes = {own_name(path, self.root): path for path in sorted(removed)}
        wanted = [name for name in removes if name is not None]
        places = pc.index_in(pa.array(wanted, pa.large_string()), names).to_pylist() if wanted else []
        for name, place in zip(wanted, places, strict=True):
            live = None if place is None else self.files.column("path")[place].as_py()
            if live not in (None, removes[name]):
                raise CorruptMetadata(f"data file {live}", "one spelling of its path", f"a remove of {removes[name]}")

    def tagged(self, name: str, places: Numbers) -> bool:
        """Whether one of the files at these places has this tag."""
        if any(
            name in self.others[place].tags for place in (places[places >= len(self.adds)] - len(self.adds)).tolist()
        ):
            return True
        tags = self.adds.rows.column("tags")
        if tags.null_count == len(tags):
            return False
        held = self.adds.taken(places[places < len(self.adds)]).column("tags")
        return bool(pc.any(pc.is_valid(pc.map_lookup(held, name, "first"))).as_py())

    def made(self, places: Numbers) -> Iterator[DeltaDataFile]:
        """The files at these places, in this order."""
        stored = self.adds.bodies(places[places < len(self.adds)])
        for place in places.tolist():
            if place < len(self.adds):
                yield data_file(next(stored), root=self.root, has_vectors=self.has_vectors, anywhere=self.anywhere)
            else:
                yield self.others[place - len(self.adds)]


def odd_paths(paths: Array) -> Array:
    """Whether each path may differ from the file's name in storage, or name no file below the table's folder."""
    long = pc.greater(pc.binary_length(paths), MAX_NAME_BYTES)
    odd: Array = pc.or_(pc.match_substring_regex(paths, _ODD_PATH), long)
    return odd


def _names(paths: Array, root: str, *, anywhere: bool) -> Array | None:
    """The name in storage of each path; None if each is the path itself."""
    odd = odd_paths(paths)
    own = [storage_name(str(path), root, anywhere=anywhere) for path in paths.filter(odd).to_pylist()]
    names = pc.replace_with_mask(paths, odd, pa.array(own, pa.large_string())) if own else paths
    return None if names is paths or names.equals(paths) else names


def _columns(adds: AddColumns, *, has_vectors: bool) -> tuple[FileColumns, Flags]:
    """The numbers of all files, and which of the files may be wrong."""
    rows, uncounted = _counts(adds.rows.column("stats"))
    vectors = adds.rows.column("deletionVector")
    deletes = pc.is_valid(vectors).to_numpy().astype(np.int64)
    deleted = _numbers(pc.struct_field(vectors, "cardinality"))
    sizes = _numbers(adds.rows.column("size"))
    wrong = uncounted | (sizes < 0) | ((rows != UNKNOWN) & (deleted > rows))
    if deletes.any():
        wrong |= (deletes > 0) & (_odd_vectors(vectors) | (not has_vectors))
    return FileColumns(sizes, rows, deleted, deletes), wrong


def _odd_vectors(vectors: ChunkedArray) -> Flags:
    kind, offset = (pc.struct_field(vectors, name) for name in ("storageType", "offset"))
    known = pc.is_in(kind, pa.array([*VectorStorage], pa.string())).to_numpy()
    inline = pc.and_(pc.equal(kind, VectorStorage.INLINE.value), pc.is_valid(offset))
    numbers = [_numbers(pc.struct_field(vectors, name)) for name in ("offset", "sizeInBytes", "cardinality")]
    found: Flags = ~known | pc.fill_null(inline, fill_value=False).to_numpy() | (np.minimum.reduce(numbers) < 0)
    return found


def _counts(stats: ChunkedArray) -> tuple[Numbers, Flags]:
    """The rows of each file, and whether its statistics are still to be looked at."""
    counts = [(row_counts(chunk), len(chunk)) for chunk in stats.chunks]
    found = [np.full(size, UNKNOWN, np.int64) if some is None else some for some, size in counts]
    left = [np.full(size, some is None) for some, size in counts]
    return np.concatenate([np.zeros(0, np.int64), *found]), np.concatenate([np.zeros(0, np.bool_), *left])


def _numbers(column: ChunkedArray) -> Numbers:
    found: Numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return found


def _known(rows: int | None) -> int:
    return UNKNOWN if rows is None else rows


def _joined(columns: FileColumns, others: Sequence[DeltaDataFile]) -> FileColumns:
    def both(some: Numbers, more: Sequence[int]) -> Numbers:
        return np.concatenate((some, np.asarray(more, np.int64)))

    return FileColumns(
        both(columns.bytes, [file.bytes for file in others]),
        both(columns.rows, [_known(file.rows) for file in others]),
        both(columns.deleted_rows, [file.deleted_rows for file in others]),
        both(columns.deletes, [file.deletes for file in others]),
    )


def _text(column: ChunkedArray, more: Sequence[str]) -> Array:
    """The column and more texts behind it, in one chunk. Half a character, as JSON may name one, is kept."""
    added = pa.array([text.encode(errors="surrogatepass") for text in more], pa.large_binary())
    held = column.cast(pa.large_string()).cast(pa.large_binary())
    joined: Array = pa.chunked_array([*held.chunks, added], pa.large_binary()).combine_chunks()
    return joined


def _raise_one_name(files: pa.Table) -> None:
    paths: dict[str, str] = {}
    columns = [map(str, files.column(name).to_pylist()) for name in ("path", "name")]
    for path, name in zip(*columns, strict=True):
        if paths.setdefault(name, path) != path:
            raise CorruptMetadata(f"data file {path}", "one spelling of its path", paths[name])
