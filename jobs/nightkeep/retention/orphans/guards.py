"""Counts and clocks -> a reason to remove nothing: incomplete evidence, clocks that disagree, too many files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from nightkeep.errors import EvidenceError, UsageError
from nightkeep.model import Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import TableFiles
from nightkeep.retention.orphans.classify import below, own_folder
from nightkeep.retention.orphans.sets import SetCounts
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.storage import LocalStorage, spelled
from nightkeep.storage.times import TICK_MS

FEW: Final = 100
"""This many files may be removed whatever their share: a small table may consist mostly of orphans."""
CLOCK = "clock-"
"""Prefix of the names of files that are written only to learn the store's time."""

_HOUR_MS: Final = 60 * 60 * 1000


def check_age(order: SweepOrder, table_files: TableFiles) -> None:
    """Raises UsageError if the age is below the format's floor, unless the order allows that."""
    if order.older_than_ms < table_files.floor_ms and not order.below_floor:
        raise UsageError(
            f"{table_files.table.name}: files older than {_hours(order.older_than_ms)} asked for, expected at least "
            f"{_hours(table_files.floor_ms)}: a writer at work would lose its files (allowed below the floor only)"
        )


def check_evidence(counted: SetCounts, table_files: TableFiles) -> None:
    """Raises EvidenceError if metadata and the listing contradict each other."""
    name = table_files.table.name
    if counted.missing or counted.resized:
        require_folders(counted, table_files)
        faults = (
            f"{counted.missing} missing, {counted.resized} of another size: {'; '.join(map(str, counted.examples))}"
        )
        raise EvidenceError(f"{name}: files that snapshots need", "in the folder as metadata states", faults)
    if counted.orphans.files and not (counted.live.files or counted.needed):
        raise EvidenceError(f"{name}: files listed", "some that a snapshot names", f"none of {counted.listed.files}")
    check_spelling(counted, name)


def check_spelling(counted: SetCounts, table: str) -> None:
    """Raises EvidenceError if an orphan may be a live file under another name: a folder may have two names."""
    if counted.doubled:
        expected = "others than live files, in name or size"
        doubles = f"{counted.doubled} that may be one file under two names: {'; '.join(counted.doubles)}"
        raise EvidenceError(f"{table}: files that nothing needs", expected, doubles)


def not_proven(counted: SetCounts, mode: SweepMode) -> str | None:
    """Why these orphans may not be deleted for good, or None: the lists of live files are not proven complete."""
    reasons = counted.not_evident if mode is SweepMode.DELETE else ()
    if not reasons:
        return None
    more = f", and {len(reasons) - 1} more like it" if len(reasons) > 1 else ""
    return f"there is no evidence that all live files are named ({reasons[0]}{more}); {_WITHOUT_EVIDENCE}"


_WITHOUT_EVIDENCE: Final = "they can be quarantined, and restored"


def check_proven(counted: SetCounts, mode: SweepMode, table: str) -> None:
    """Raises EvidenceError if roots that appeared meanwhile give less evidence than `mode` requires."""
    if reason := not_proven(counted, mode):
        raise EvidenceError(f"{table}: files about to be deleted", "evidence that nothing needs them", reason)


def too_many(counted: SetCounts, order: SweepOrder) -> str | None:
    """Why so many files may not be removed at once, or None."""
    gone = counted.orphans.files
    # What was found from a log was not listed: the files that stay are those that metadata names.
    recognized = max(counted.listed.files - counted.unknown.files, counted.needed + gone)
    if gone <= FEW or gone <= order.max_share * recognized:
        return None
    return f"{gone} of {recognized} files would go, more than the share of {order.max_share:.0%} that is allowed"


def store_ahead_ms(table_files: TableFiles, run: Run, clock: Callable[[], int]) -> int:
    """Milliseconds that the store's clock is ahead of ours, negative if it is behind, 0 within a tick of the clock.

    Writes a file and deletes it again.
    """
    storage, name = table_files.storage, below(own_folder(table_files), f"{CLOCK}{run.token}-{run.attempt}")
    before = clock()
    storage.put(name, b"")
    stored, after = storage.stat(name), clock()
    storage.delete(name)
    if stored is None:
        raise EvidenceError(spelled(storage, name), "there, as it was just written", "no such file")
    ahead = max(stored.modified_ms - after, 0) + min(stored.modified_ms - before, 0)
    return ahead if abs(ahead) > TICK_MS else 0


def clocks_apart(ahead_ms: int) -> str | None:
    """Why ages cannot be computed, or None: the clocks differ by more than an hour."""
    if abs(ahead_ms) <= _HOUR_MS:
        return None
    side = "ahead of" if ahead_ms > 0 else "behind"
    return f"the store's clock is {_hours(abs(ahead_ms))} {side} ours: ages cannot be determined"


def _hours(milliseconds: int) -> str:
    return f"{milliseconds / _HOUR_MS:g} h"


def require_folders(counted: SetCounts, table_files: TableFiles) -> None:
    """Raises EvidenceError, naming a link, if every example of a missing or resized file is behind a symbolic link.

    A listing follows no link. Returns if one example is not: that file is really missing or resized.
    """
    if not isinstance(table_files.storage, LocalStorage):
        return
    root = Path(table_files.storage.root)
    links = [next(_links(root, example.name), None) for example in counted.examples]
    if links and None not in links:
        expected = "the files of the table themselves"
        found = "a symbolic link, which is not followed: move the files here, or mount their folder in the link's place"
        raise EvidenceError(f"{table_files.table.name}: {str(root).rstrip('/')}/{links[0]}", expected, found)


def _links(root: Path, name: str) -> Iterator[str]:
    """Symbolic links on the path to a file, from the table's folder down."""
    path_to = PurePosixPath(name)
    for path in (*reversed(path_to.parents), path_to):
        if path.parts and (root / path).is_symlink():
            yield str(path)
