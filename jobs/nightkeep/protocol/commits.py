"""What a format provides for commits: rewrites -> a staged candidate -> a visible version. Only `commit` shows any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from nightkeep.model import Candidate, Committed, Rewrite, Run, UnitKey
from nightkeep.protocol.work import E, S


@dataclass(frozen=True, slots=True)
class Commits(Generic[S, E]):
    """Functions of a format's room `commit`. Pickles."""

    stage: Callable[[S, Sequence[Rewrite[E]], Run], Candidate]
    """Writes all files of a new version on top of the snapshot, except the one that makes it visible.

    If the rewrites change nothing in the snapshot, nothing is written, and the candidate has no units."""
    conflicts: Callable[[S, S, Sequence[Rewrite[E]]], tuple[tuple[UnitKey, str], ...]]
    """Units whose inputs differ between the first snapshot, which was planned on, and the second, the head; each with
    the reason."""
    commit: Callable[[Candidate], bool]
    """Makes the candidate visible, atomically. False if its version already exists, or if its parent is gone."""
    visible: Callable[[Candidate], bool]
    """Whether the candidate's version exists and is this candidate, byte for byte."""
    undermined: Callable[[Candidate], str | None]
    """Why the version below a candidate that was just committed is not its parent.

    None if it is the parent, or if either version has expired or been removed since. Always None for formats whose
    commit cannot succeed on another parent."""
    committed: Callable[[Run], tuple[Committed, ...]]
    """The run's commits that readers can see, of all its attempts, oldest first."""
    discard: Callable[[Sequence[str]], None]
    """Removes staged files that no metadata references. Names that are gone are ignored: a retry discards again."""
    rollback: Callable[[int], str]
    """The engine's own statement that makes this version the current one again."""
    afterwards: Callable[[int, Run], str | None] | None = None
    """What a published version calls for and no reader needs, such as a checkpoint of the log: a sentence about what
    was done, None if nothing was. Whatever it raises, the version stays published."""
