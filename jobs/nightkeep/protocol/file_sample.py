"""A sample of the files that commits added -> what is left of it, and the faults that a look at each commit finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import TypeVar

from nightkeep.errors import EvidenceError, MissingFile, RefusedTable
from nightkeep.protocol.past import FileSample
from nightkeep.storage import Storage

Chosen = TypeVar("Chosen")


class SampleBudget:
    """What of a sample may still be opened, and read."""

    def __init__(self, sample: FileSample) -> None:
        self.chance, self.files = Random(sample.seed), sample.files
        self._of_commit, self._bytes = sample.of_commit, sample.bytes

    def chosen(self, files: Sequence[Chosen]) -> Sequence[Chosen]:
        """Which of the files of a commit are opened."""
        most = min(self._of_commit, self.files)
        taken = files if len(files) <= most else self.chance.sample(files, most)
        self.files -= len(taken)
        return taken

    def takes(self, size: int) -> bool:
        """Whether so many bytes may be read. They count then."""
        if size > self._bytes:
            return False
        self._bytes -= size
        return True


def size_faults(storage: Storage, name: str, stated: int, *, path: str) -> Iterator[str]:
    """A sentence where the file `name`, which metadata names as `path`, has another size than its manifest states.
    Raises MissingFile where it is not there."""
    found = storage.stat(name)
    if found is None:
        raise MissingFile(path, "a file that metadata names", "no such file")
    if found.bytes != stated:
        yield f"{path} has {found.bytes} bytes, its manifest states {stated}"


def guarded(faults: Iterator[str]) -> Iterator[str]:
    """The faults of one file, of which one may be that it cannot be read. Raises MissingFile."""
    try:
        yield from faults
    except RefusedTable:
        return
    except MissingFile:
        raise
    except EvidenceError as failure:
        yield str(failure)


def sampled_faults(
    commits: Sequence[int], budget: SampleBudget, look: Callable[[int], Iterator[str]], is_there: Callable[[int], bool]
) -> Mapping[int, tuple[str, ...]]:
    """As `protocol.past.PastReading.file_faults`, of the newest commits first. One that has expired, or that cannot be
    read by a feature, has none."""
    found: dict[int, tuple[str, ...]] = {}
    for version in reversed(commits):
        if budget.files <= 0:
            break
        faults: list[str] = []
        try:
            faults.extend(look(version))
        except RefusedTable:
            pass
        except MissingFile as failure:
            faults = [*faults, str(failure)] if is_there(version) else []
        except EvidenceError as failure:
            faults.append(str(failure))
        if faults:
            found[version] = tuple(faults)
    return found
