"""A table -> its listing, then every file that a root references, read until no new root appears.

Because of this order, a file written meanwhile is no candidate, and a file committed meanwhile is live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import OpenFiles, OpenRoot, Retention
from nightkeep.retention.orphans.guards import check_proven, check_spelling
from nightkeep.retention.orphans.sets import SetCounts, Sets

_ROUNDS: Final = 20
"""How often new roots are read. A table that gets versions faster than that is not swept."""


class FileSurvey:
    """The roots of a table that have been read, and the sets that hold their files."""

    def __init__(self, table: OpenFiles, retention: Retention, sets: Sets) -> None:
        self._table, self._retention, self._sets = table, retention, sets
        self.table = table.table_files().table.name
        self._seen: dict[str, OpenRoot] = {}

    def begin(self, candidates: Callable[[], None]) -> None:
        """Find the candidates, then read roots until no new one appears. `candidates` gives them to the sets.

        Raises CorruptMetadata for a table without roots, and EvidenceError for a root that disappeared meanwhile: its
        files may have been read in part, while another process deletes them.
        """
        before = self._roots()
        candidates()
        self._read(before, expected=True)
        self._read_all(vanishing=True)

    def read(self) -> None:
        """Read roots until no new one appears, without a listing: the candidates are what expired roots reached.

        Raises as `begin`, except for roots that disappear.
        """
        self._read_all(vanishing=False)

    def catch_up(self) -> bool:
        """Read the roots that appeared since; return whether there were any.

        A root that was read and has disappeared is no danger: its files still count as live.
        """
        return self._read_new(vanishing=False)

    def _read_all(self, *, vanishing: bool) -> None:
        for _ in range(_ROUNDS):
            if not self._read_new(vanishing=vanishing):
                return
        raise EvidenceError(f"{self.table}: roots", "none that are new in one look", f"new ones in {_ROUNDS} looks")

    def _read_new(self, *, vanishing: bool) -> bool:
        now = self._roots()
        lasting = {root.id for root in self._seen.values() if not root.passing}
        gone = sorted(lasting - {root.id for root in now})
        if vanishing and gone:
            raise EvidenceError(f"{self.table}: {', '.join(gone[:5])}", "there until all is read", "gone meanwhile")
        fresh = tuple(root for root in now if root.id not in self._seen)
        self._read(fresh, expected=False)
        return bool(fresh)

    def _roots(self) -> tuple[OpenRoot, ...]:
        roots = self._table.roots(self._retention)
        if not roots:
            raise CorruptMetadata(f"{self.table}: roots", "a snapshot, version or tag that keeps files", "none")
        return roots

    def _read(self, roots: tuple[OpenRoot, ...], *, expected: bool) -> None:
        if roots:
            self._sets.live(self._table, roots, expected=expected)
        self._seen |= {root.id: root for root in roots}


def still_orphans(
    survey: FileSurvey, sets: Sets, settle: Callable[[], SetCounts], mode: SweepMode
) -> Iterator[pa.RecordBatch]:
    """Batches of orphans (schema ORPHANS), sorted by name. New roots are read before each batch, so that a file which
    became live meanwhile is not in it.

    Raises EvidenceError if an orphan may be a live file under another name, or if `mode` is no longer allowed.
    """
    last = None
    while True:
        for batch in sets.orphans():
            rest = batch if last is None else batch.filter(pc.greater(batch["name"], last))
            if not rest.num_rows:
                continue
            if survey.catch_up():
                counted = settle()
                check_spelling(counted, survey.table)
                check_proven(counted, mode, survey.table)
                break
            yield rest
            last = rest["name"][-1]
        else:
            return
