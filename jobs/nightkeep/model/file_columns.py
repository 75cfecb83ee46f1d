"""Live files of a unit as columns: what planning asks of a file, for all of them at once. Arrays are not written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
UNKNOWN = -1
F_co = TypeVar("F_co", covariant=True)


class SizedFile(Protocol):
    """A live data file and counts of its deletes, from metadata only. Must be picklable, as tasks contain files.

    `name` is unique in the table. `bytes` is the size in storage. `rows` includes deleted rows, and is None if metadata
    does not have it. `deletes` counts deletion vectors and delete files that apply to the file, even if they delete
    none of its rows. `deleted_rows` is the count by metadata, at most `rows`.
    """

    @property
    def name(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def rows(self) -> int | None: ...

    @property
    def deleted_rows(self) -> int: ...

    @property
    def deletes(self) -> int: ...


F = TypeVar("F", bound=SizedFile)


@dataclass(frozen=True, slots=True, eq=False)
class FileColumns:
    """The bytes, rows (UNKNOWN where metadata has none), deleted rows and deletes of each file."""

    bytes: Numbers
    rows: Numbers
    deleted_rows: Numbers
    deletes: Numbers

    @staticmethod
    def of(parts: Sequence[FileColumns]) -> FileColumns:
        """The files of all parts, in their order."""
        parts = [NO_FILES, *parts]
        return FileColumns(
            np.concatenate([part.bytes for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.deleted_rows for part in parts]),
            np.concatenate([part.deletes for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.bytes)

    def take(self, places: Numbers) -> FileColumns:
        return FileColumns(self.bytes[places], self.rows[places], self.deleted_rows[places], self.deletes[places])


_NONE: Final = np.zeros(0, np.int64)
NO_FILES: Final = FileColumns(_NONE, _NONE, _NONE, _NONE)


@runtime_checkable
class FilesInColumns(Protocol[F_co]):
    """Files that are stored as columns: a tuple of them would cost a microsecond and a KB for each."""

    def columns(self) -> FileColumns: ...

    def names(self) -> Sequence[str]: ...

    def name_ranks(self) -> Numbers:
        """The place of each file in the order of names."""

    def take(self, places: Numbers) -> Sequence[F_co]: ...


def columns_of(files: Sequence[SizedFile]) -> FileColumns:
    """The columns of some files, which may be stored as such."""
    if isinstance(files, FilesInColumns):
        return files.columns()
    columns = (
        [file.bytes for file in files],
        [UNKNOWN if file.rows is None else file.rows for file in files],
        [file.deleted_rows for file in files],
        [file.deletes for file in files],
    )
    return FileColumns(*(np.asarray(column, np.int64) for column in columns))


def names_of(files: Sequence[SizedFile]) -> Sequence[str]:
    """The name of each file."""
    return files.names() if isinstance(files, FilesInColumns) else [file.name for file in files]


def name_ranks(files: Sequence[SizedFile]) -> Numbers:
    """The place of each file in the order of names."""
    if isinstance(files, FilesInColumns):
        return files.name_ranks()
    order = sorted(range(len(files)), key=[file.name for file in files].__getitem__)
    return np.argsort(np.asarray(order, np.int64))


def taken(files: Sequence[F], places: Numbers) -> Sequence[F]:
    """The files at these places, in this order."""
    if isinstance(files, FilesInColumns):
        some: Sequence[F] = files.take(places)
        return some
    return tuple(files[place] for place in places.tolist())


def total(values: Numbers) -> int:
    """The sum, exact where it takes more than 64 bits."""
    return sum(values.tolist())
