"""Listed files -> deleted or moved, many at a time. Each is looked at once more just before, and stays if it changed.

On a disk a thread opens a folder once for many of its files, looks at a file and unlinks it. A second name is given to
many files before one sync of their new folder; only then do the first names go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

from nightkeep.errors import MissingFile, NightkeepError
from nightkeep.storage.local.store import LocalStorage
from nightkeep.storage.many_requests import at_once, each_chunk, merged
from nightkeep.storage.verbs import ListedFile, Storage, always, spelled

_GONE: Final = (FileNotFoundError, NotADirectoryError)


class MoveEnd(Enum):
    """How the move of one file ended."""

    MOVED = "moved"
    CHANGED = "changed"
    """It is not what was listed, or it is gone; it was left."""
    TAKEN = "taken"
    """Another file has the new name; it was left."""
    LATE = "late"
    """There was no time left to start on it."""
    BROKEN = "broken"
    """It failed, and the file may have either name or both."""


@dataclass(frozen=True, slots=True)
class MoveAnswer:
    """How a move ended, and for a BROKEN one why."""

    end: MoveEnd
    why: str = ""


Move: TypeAlias = tuple[ListedFile, str]
"""A listed file, and the name it is to get."""


def delete_listed(storage: Storage, files: Sequence[ListedFile]) -> tuple[tuple[str, str | None], ...]:
    """Delete files that still have the size and the second that were listed. A listing names each file once.

    Returns those that were not deleted, in the order of `files`, each with the reason; it is None for a file that
    changed or is gone. Raises OSError if a bucket or a namenode does not answer the request for them; no file was
    deleted then.
    """
    if isinstance(storage, LocalStorage):
        kept = merged(each_chunk(partial(_deleted_together, storage), files, of=lambda file: _split(file.name)[0]))
    else:
        stats = at_once(storage.stat, [file.name for file in files])
        kept = {file.name: None for file, found in zip(files, stats, strict=True) if not is_as_listed(file, found)}
        if going := [file.name for file in files if file.name not in kept]:
            kept |= storage.delete_all(going)
    return tuple((file.name, kept[file.name]) for file in files if file.name in kept)


def move_listed(
    storage: Storage, moves: Sequence[Move], *, may_go: Callable[[], bool] = always
) -> tuple[MoveAnswer, ...]:
    """Move files that still have the size and the second that were listed, as `Storage.move` does. Answers in order.

    `may_go` is asked before work on a file starts, and again directly before its first name is removed.
    """
    if not isinstance(storage, LocalStorage):
        return tuple(at_once(partial(_moved, storage, may_go=may_go), moves))
    work = partial(_moved_together, storage, may_go=may_go)
    answers = merged(each_chunk(work, moves, of=lambda move: (_split(move[0].name)[0], _split(move[1])[0])))
    return tuple(answers[file.name] for file, _ in moves)


def is_as_listed(listed: ListedFile, found: ListedFile | None) -> bool:
    """Whether a file is still what was listed. Buckets give milliseconds in a listing, whole seconds for one file."""
    return found is not None and (found.bytes, found.modified_ms // 1000) == (listed.bytes, listed.modified_ms // 1000)


def _split(name: str) -> tuple[str, str]:
    folder, _, last = name.rpartition("/")
    return folder, last


def _deleted_together(storage: LocalStorage, files: Sequence[ListedFile]) -> dict[str, str | None]:
    """Delete files of one folder. Returns those that stay, as `delete_listed` does."""
    kept: dict[str, str | None] = {}
    try:
        with storage.changing(files[0].name) as (folder, _):
            for file in files:
                kept |= _deleted(storage, folder, file)
    except _GONE:
        return dict.fromkeys((file.name for file in files), None)
    except (NightkeepError, OSError) as failure:
        return dict.fromkeys((file.name for file in files), str(failure))
    return kept


def _deleted(storage: LocalStorage, folder: int, file: ListedFile) -> dict[str, str | None]:
    last = _split(file.name)[1]
    try:
        if not _is_listed(file, storage.looked_at(folder, last)):
            return {file.name: None}
        storage.removed(folder, last, file.name)
    except FileNotFoundError:
        return {file.name: None}
    except OSError as failure:
        return {file.name: str(failure)}
    return {}


def _is_listed(listed: ListedFile, status: os.stat_result) -> bool:
    return (status.st_size, status.st_mtime_ns // 1_000_000_000) == (listed.bytes, listed.modified_ms // 1000)


def _moved(storage: Storage, move: Move, *, may_go: Callable[[], bool]) -> MoveAnswer:
    file, to = move
    if not may_go():
        return MoveAnswer(MoveEnd.LATE)
    try:
        if not is_as_listed(file, storage.stat(file.name)):
            return MoveAnswer(MoveEnd.CHANGED)
        return MoveAnswer(MoveEnd.MOVED if storage.move(file.name, to, may_go=may_go) else MoveEnd.TAKEN)
    except MissingFile:
        return MoveAnswer(MoveEnd.CHANGED)
    except (NightkeepError, OSError) as failure:
        return MoveAnswer(MoveEnd.BROKEN, str(failure))


def _moved_together(
    storage: LocalStorage, moves: Sequence[Move], *, may_go: Callable[[], bool]
) -> dict[str, MoveAnswer]:
    """As `move_listed`, for files of one folder that go to one other folder."""
    answers: dict[str, MoveAnswer] = {}
    (first, there), *_ = moves
    with ExitStack() as opened:
        try:
            try:
                source, _ = opened.enter_context(storage.changing(first.name))
            except _GONE:
                return {file.name: MoveAnswer(MoveEnd.CHANGED) for file, _ in moves}
            target, _ = opened.enter_context(storage.changing(there, make=True))
            folders = _TwoFolders(storage, source, target, may_go)
            named = [(move, was) for move in moves if (was := folders.name_again(move, answers)) is not None]
            os.fsync(target)
            answers |= {move[0].name: folders.leave(move, was) for move, was in named}
        except (NightkeepError, OSError) as failure:
            broken = MoveAnswer(MoveEnd.BROKEN, str(failure))
            return {file.name: broken for file, _ in moves} | answers
    return answers


@dataclass(frozen=True, slots=True)
class _TwoFolders:
    """The open folders of moves: of the first names, and of the second ones."""

    storage: LocalStorage
    source: int
    target: int
    may_go: Callable[[], bool]

    def name_again(self, move: Move, answers: dict[str, MoveAnswer]) -> os.stat_result | None:
        """What the file is that has both names now. None, with an answer, if it has not."""
        file, to = move
        if not self.may_go():
            answers[file.name] = MoveAnswer(MoveEnd.LATE)
            return None
        try:
            status = self.storage.looked_at(self.source, _split(file.name)[1])
            if _is_listed(file, status):
                self.storage.given(self.source, self.target, file.name, to)
                return status
            answers[file.name] = MoveAnswer(MoveEnd.CHANGED)
        except FileNotFoundError:
            answers[file.name] = MoveAnswer(MoveEnd.CHANGED)
        except FileExistsError:
            answers[file.name] = MoveAnswer(MoveEnd.TAKEN)
        except (NightkeepError, OSError) as failure:
            answers[file.name] = MoveAnswer(MoveEnd.BROKEN, str(failure))
        return None

    def leave(self, move: Move, was: os.stat_result) -> MoveAnswer:
        """Remove the first name. It stays if it belongs to another file by now, if the second name is gone, or if
        `may_go` forbids it."""
        file, to = move
        last = _split(file.name)[1]
        try:
            now = self.storage.looked_at(self.source, last)
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (was.st_ino, was.st_size, was.st_mtime_ns):
                return self._left(file, "nobody else to change it, found that somebody did")
            if not self._is_there(to) or not self.may_go():
                return self._left(file, "to be moved in time, found that it took too long")
            self.storage.removed(self.source, last, file.name)
        except OSError as failure:
            return MoveAnswer(MoveEnd.BROKEN, str(failure))
        return MoveAnswer(MoveEnd.MOVED)

    def _is_there(self, to: str) -> bool:
        with suppress(FileNotFoundError):
            self.storage.looked_at(self.target, _split(to)[1])
            return True
        return False

    def _left(self, file: ListedFile, why: str) -> MoveAnswer:
        return MoveAnswer(MoveEnd.BROKEN, f"{spelled(self.storage, file.name)}: expected {why}; it is left")
