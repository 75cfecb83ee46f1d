"""A folder that counts which files are opened, and how many bytes are read of them."""

import io
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa

from nightkeep.storage import LocalStorage


@dataclass(frozen=True)
class CountedReads(LocalStorage):
    """`opened` and `taken`, in bytes, are by the last part of a file's name."""

    opened: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)

    def open(self, name: str) -> pa.NativeFile:
        last = name.rpartition("/")[2]
        self.opened[last] += 1
        return pa.PythonFile(
            cast(io.IOBase, _Counted((Path(self.root) / name).read_bytes(), self.taken, last)), mode="r"
        )


class _Counted(io.BytesIO):
    def __init__(self, data: bytes, counted: Counter[str], name: str) -> None:
        super().__init__(data)
        self._counted, self._name = counted, name

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self._counted[self._name] += len(found)
        return found
