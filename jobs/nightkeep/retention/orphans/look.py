"""A table -> its listing, then every file that a root references, read until no new root appears.

In this order a file that is written meanwhile is no candidate, and one that is committed meanwhile is live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.protocol.table_files import Retention, Root, Sweeps, TableFiles
from nightkeep.retention.orphans.guards import check_proven, check_spelling
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.retention.orphans.sweep_request import SweepMode

_ROUNDS: Final = 20
"""A table that gets new versions faster than we can read their roots is not one to sweep now."""


class FileSurvey:
    """The roots of a table that are read so far, and the sets that their files went into."""

    def __init__(self, table: Sweeps, retention: Retention, sets: Sets) -> None:
        self._table, self._retention, self._sets = table, retention, sets
        self.table = table.territory().table.name
        self._seen: dict[str, Root] = {}

    def begin(self, territory: TableFiles) -> None:
        """List the candidates, which are in this territory, and read what keeps files alive, until nothing new appears.

        Raises CorruptMetadata where nothing does, EvidenceError for a root that vanished meanwhile: what it names may
        be half gone, and nobody can say what else is about to go.
        """
        before = self._roots()
        self._sets.list(territory)
        self._read(before, expected=True)
        self._read_all(vanishing=True)

    def read(self) -> None:
        """Read what keeps files alive, until nothing new appears, without a listing: of candidates that were reached.

        Raises as `begin`, but for roots that vanish.
        """
        self._read_all(vanishing=False)

    def catch_up(self) -> bool:
        """Read roots that are new since; whether there were any.

        One that was read and is gone by now kept its files for us: to lose it meanwhile is no danger.
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

    def _roots(self) -> tuple[Root, ...]:
        roots = self._table.roots(self._retention)
        if not roots:
            raise CorruptMetadata(f"{self.table}: roots", "a snapshot, version or tag that keeps files", "none")
        return roots

    def _read(self, roots: tuple[Root, ...], *, expected: bool) -> None:
        if roots:
            self._sets.live(self._table, roots, expected=expected)
        self._seen |= {root.id: root for root in roots}


def still_orphans(
    look: FileSurvey, sets: Sets, settle: Callable[[], SetCounts], mode: SweepMode
) -> Iterator[pa.RecordBatch]:
    """ORPHANS by name, each batch after one more look at the roots: what became live meanwhile is not among them.

    Raises EvidenceError where one of them may be a live file by another name, or may no longer go as `mode` says.
    """
    last = None
    while True:
        for batch in sets.orphans():
            rest = batch if last is None else batch.filter(pc.greater(batch["name"], last))
            if not rest.num_rows:
                continue
            if look.catch_up():
                counted = settle()
                check_spelling(counted, look.table)
                check_proven(counted, mode, look.table)
                break
            yield rest
            last = rest["name"][-1]
        else:
            return
