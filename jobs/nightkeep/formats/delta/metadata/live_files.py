"""Adds of a version -> its live files as columns. A file becomes an object when it is looked at.

Every file is checked, most of them as columns: those that columns leave in doubt are made, which raises what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as arrow_compute

from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.log_files import LogFiles
from nightkeep.model.arrow_types import Array
from nightkeep.model.file_columns import FileColumns, Numbers

pc: Final[Any] = arrow_compute
"""The stubs know few of the combinations of types."""

_LISTED_FILES = 1 << 16


class DeltaFiles(Sequence[DeltaDataFile]):
    """Some of the live files of a version, by path. Equal to any sequence of equal files. Pickles as a tuple."""

    def __init__(self, stored: LogFiles, places: Numbers) -> None:
        self._stored, self._places = stored, places

    def columns(self) -> FileColumns:
        return self._stored.columns.take(self._places)

    def names(self) -> Sequence[str]:
        return [str(name) for name in self._taken("name").to_pylist()]

    def name_ranks(self) -> Numbers:
        if not self._stored.renamed:
            return np.arange(len(self), dtype=np.int64)
        order = pc.array_sort_indices(self._taken("name")).to_numpy().astype(np.int64)
        return np.argsort(order)

    def take(self, places: Numbers) -> DeltaFiles:
        return DeltaFiles(self._stored, self._places[places])

    def texts(self) -> Iterator[bytes]:
        """As file_texts."""
        for start in range(0, len(self), _LISTED_FILES):
            some = self.take(np.arange(start, min(start + _LISTED_FILES, len(self))))
            columns = [some._taken(name).cast(pa.large_binary()) for name in ("path", "vector")]
            sizes = pa.array(some.columns().bytes).cast(pa.string()).cast(pa.large_binary())
            zero = pa.scalar(b"\0", pa.large_binary())
            joined = pc.binary_join_element_wise(*columns, sizes, pa.scalar(b"", pa.large_binary()), zero)
            yield joined.buffers()[2].to_pybytes()

    def tagged(self, name: str) -> bool:
        """Whether one of the files has this tag."""
        return self._stored.tagged(name, self._places)

    def _taken(self, name: str) -> Array:
        return self._stored.files.column(name).take(self._places).combine_chunks()

    @cached_property
    def _made(self) -> tuple[DeltaDataFile, ...]:
        return tuple(self._stored.made(self._places))

    @overload
    def __getitem__(self, place: int) -> DeltaDataFile: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[DeltaDataFile, ...]: ...
    def __getitem__(self, place: int | slice) -> DeltaDataFile | tuple[DeltaDataFile, ...]:
        return self._made[place]

    def __iter__(self) -> Iterator[DeltaDataFile]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return NotImplemented
        return self._made == tuple(other)

    def __hash__(self) -> int:
        return hash(self._made)

    def __repr__(self) -> str:
        return repr(self._made)

    def __reduce__(self) -> tuple[type, tuple[list[DeltaDataFile]]]:
        return tuple, ([*self._made],)


def file_texts(files: Sequence[DeltaDataFile]) -> Iterator[bytes]:
    """The text that identifies the files, in pieces: path, vector and bytes, each with a zero byte behind it."""
    if isinstance(files, DeltaFiles):
        yield from files.texts()
    else:
        parts = (f"{file.path}\0{file.identity[1]}\0{file.bytes}\0" for file in files)
        yield from (part.encode(errors="surrogatepass") for part in parts)


def by_unit(stored: LogFiles, units: Numbers, count: int) -> list[DeltaFiles]:
    """The files of each of `count` units, by path. `units` is the number of the unit of each file."""
    order = np.argsort(units, kind="stable")
    parts = np.split(order, np.searchsorted(units[order], np.arange(1, count)))
    return [DeltaFiles(stored, _by_path(stored, places)) for places in parts]


def _by_path(stored: LogFiles, places: Numbers) -> Numbers:
    paths = stored.files.column("path").take(places).combine_chunks()
    sorted_places: Numbers = places[pc.array_sort_indices(paths).to_numpy()]
    return sorted_places
