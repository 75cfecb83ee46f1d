"""A file of the reports folder -> its JSON value. A folder -> its readable documents, and the names of the others.

Anyone may have written, cut or replaced a file. So only regular files of a bounded size are read, and anything that is
not a valid document is an error that names the file.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from nightkeep.errors import CorruptMetadata
from nightkeep.reports.document import RunDocument

MOST_BYTES = 256 << 20
"""A document of a million files is about this large. A larger file was not written by Nightkeep."""

_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is no document, or a folder that cannot be listed. `modified_ms` is None if unknown."""

    path: str
    subject: str
    expected: str
    found: str
    modified_ms: int | None = None

    @staticmethod
    def of(path: Path, failure: CorruptMetadata) -> Unreadable:
        return Unreadable(str(path), failure.subject, failure.expected, failure.found, _modified_ms(path))

    def error(self) -> CorruptMetadata:
        return CorruptMetadata(self.subject, self.expected, self.found)

    def __str__(self) -> str:
        return f"{self.subject}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class History:
    """Documents, oldest start first, and the files that could not be read, by path."""

    documents: tuple[RunDocument, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


def read_json(path: Path) -> object:
    """The JSON value of a regular file. Raises FileNotFoundError, and CorruptMetadata, naming the file, otherwise."""
    try:
        return json_value(_bytes(path))
    except FileNotFoundError:
        raise
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    except RecursionError as error:
        raise CorruptMetadata(str(path), "JSON", "values nested too deeply") from error
    except OSError as error:
        raise CorruptMetadata(str(path), "a file that can be read", error.strerror or str(error)) from error
    except ValueError as error:
        raise CorruptMetadata(str(path), "JSON", str(error)) from error


def json_value(text: bytes) -> object:
    """The value of JSON. Raises ValueError for other text and for numbers beyond 64 bits, RecursionError for depth."""
    value: object = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_refuse)
    return value


def load_document(path: str | Path) -> RunDocument:
    """One stored document. Raises FileNotFoundError, and CorruptMetadata, naming the file, if it is no document."""
    return RunDocument.from_json(read_json(Path(path)), str(path))


def read_folders(folders: list[Path]) -> History:
    """The documents of these folders. A folder that does not exist has none."""
    documents, unreadable = list[RunDocument](), list[Unreadable]()
    for folder in folders:
        try:
            for path in _documents(folder):
                one = _document(path)
                documents += [one] if isinstance(one, RunDocument) else []
                unreadable += [one] if isinstance(one, Unreadable) else []
        except OSError as failure:
            unreadable.append(
                Unreadable(str(folder), str(folder), "a folder that can be listed", str(failure.strerror))
            )
    documents.sort(key=lambda d: (d.started_at, d.table, d.run_id, d.operation))
    return History(tuple(documents), tuple(sorted(unreadable, key=lambda each: each.path)))


def _documents(folder: Path) -> Iterator[Path]:
    """Paths of the documents in a folder. Hidden files are no documents; a folder that does not exist has none."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (folder / name for name in names if name.endswith(".json") and not name.startswith("."))


def _document(path: Path) -> RunDocument | Unreadable | None:
    """The document of a path; None if it was removed meanwhile."""
    try:
        return load_document(path)
    except FileNotFoundError:
        return (
            Unreadable.of(path, CorruptMetadata(str(path), "a file", "a link to nothing"))
            if path.is_symlink()
            else None
        )
    except CorruptMetadata as failure:
        return Unreadable.of(path, failure)


def _modified_ms(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def _bytes(path: Path) -> bytes:
    # With O_NONBLOCK a FIFO without a writer opens at once and is then refused; otherwise the open would wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("no regular file")
        if status.st_size > MOST_BYTES:
            raise ValueError(f"{status.st_size:,} bytes, of which at most {MOST_BYTES:,} are read")
        with os.fdopen(descriptor, "rb", closefd=False) as source:
            return source.read(MOST_BYTES)
    finally:
        os.close(descriptor)


def _whole(text: str) -> int:
    # A page could neither add up nor show a larger number.
    if len(text) > 20 or not -_INT64 <= (value := int(text)) < _INT64:
        raise ValueError(f"a number beyond 64 bits, {text[:30]}")
    return value


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"a number beyond a double, {text[:30]}")
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text}, which is no number")
