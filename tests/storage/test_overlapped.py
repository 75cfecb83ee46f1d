"""Files whose ends overlap: all are there at the end, no two ends at once, and no failure is lost."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pytest

from nightkeep.storage import LocalStorage
from nightkeep.storage.overlapped import overlapped


@dataclass(frozen=True)
class Slow(LocalStorage):
    """Ends of files take their time, and are noted with their thread. The file `broken` cannot be ended."""

    ends: list[tuple[str, int]] = field(default_factory=list, kw_only=True)

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        with LocalStorage.create(self, name) as sink:
            yield sink
            time.sleep(0.01)
            if name == "broken":
                raise OSError(f"{name}: no space")
            self.ends.append((name, threading.get_ident()))


def test_files_end_aside_and_in_order(tmp_path: Path) -> None:
    storage = Slow(str(tmp_path))
    names = [f"file-{number}" for number in range(5)]
    with overlapped(storage) as files:
        assert files.root == storage.root
        for name in names:
            with files.create(name) as sink:
                sink.write(name.encode())
    assert [name for name, _ in storage.ends] == names
    assert threading.get_ident() not in {thread for _, thread in storage.ends}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: name for name in names}


@pytest.mark.parametrize("more", [[], ["after"], ["after", "last"]])
def test_a_file_that_cannot_be_ended_is_reported(tmp_path: Path, more: list[str]) -> None:
    with pytest.raises(OSError, match="broken: no space"), overlapped(Slow(str(tmp_path))) as files:
        for name in ["before", "broken", *more]:
            with files.create(name) as sink:
                sink.write(b"x")


def test_a_writer_that_fails_ends_no_file(tmp_path: Path) -> None:
    storage = Slow(str(tmp_path))
    with pytest.raises(ValueError, match="of the writer"), overlapped(storage) as files, files.create("half"):
        raise ValueError("of the writer")
    assert storage.ends == []
