"""A table -> the same table without the places that other tables may share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from nightkeep.protocol.table_files import Reach, Retention, Root, Sweeps, TableFiles
from nightkeep.retention.orphans.classify import vouched


@dataclass(frozen=True, slots=True)
class VouchedTable:
    """A table whose shared places are left out, unless the caller vouches for those `outside`."""

    table: Sweeps
    outside: bool

    def territory(self) -> TableFiles:
        return vouched(self.table.territory(), outside=self.outside)

    def roots(self, retention: Retention) -> tuple[Root, ...]:
        return self.table.roots(retention)

    def reach(self, root: Root) -> Reach:
        return self.table.reach(root)

    def live(self, source: object) -> Iterator[pa.RecordBatch]:
        return self.table.live(source)
