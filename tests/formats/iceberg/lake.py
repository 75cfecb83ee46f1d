"""A table that Java changed by keys: its rows, its entries, and commits of ours to it that are without fault."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.laid_anew import laid_anew
from tests.formats.iceberg.runs import DAYS, Kept, changed, configured, opened
from tests.support.proofs import unit_faults

from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Candidate, Rewrite, Run, UnitKey

LINEAGE = ["id", "day", "note", "_row_id", "_last_updated_sequence_number"]
_NUMBERS = count()


@dataclass(frozen=True)
class Lake:
    """One table, for Java and for us."""

    java: IcebergJava
    table: Table

    @property
    def version(self) -> int:
        """Of the format."""
        found: int = self.table.document()["format-version"]
        return found

    @property
    def ours(self) -> IcebergTable:
        return opened(self.table)

    def laid_anew(self, run: Run, days: Sequence[str] = DAYS, **how: Any) -> tuple[IcebergSnapshot, list[Rewrite]]:
        snapshot = self.ours.snapshot()
        units = [snapshot.by_key[UnitKey(f"day={day}")] for day in days]
        return snapshot, [laid_anew(self.ours, snapshot, unit, run, **how) for unit in units]

    def commit(self, rewrites: Sequence[Rewrite], run: Run) -> Candidate:
        """On the newest snapshot, once it is found to be without fault."""
        table, head = self.ours, self.ours.snapshot()
        candidate = table.commits.stage(head, rewrites, run)
        staged = table.staged(candidate)
        faults = table.gate.faults(head, staged, candidate.units)
        for unit in (head.by_key[key] for key in candidate.units):
            faults += unit_faults(table.gate, unit, staged.by_key[unit.key])
        assert not faults
        assert table.commits.commit(candidate)
        return candidate

    def shown(self) -> Counter[tuple[Any, ...]]:
        """Rows as Java reads them, with their lineage where they have one."""
        columns = LINEAGE if self.version == 3 else LINEAGE[:3]
        return Counter(map(tuple, self.java.read(self.table, columns=columns).rows))

    def entries(self, **wanted: Any) -> list[dict[str, Any]]:
        found = self.java.entries(self.table)
        return [each for each in found if all(each[name] == value for name, value in wanted.items())]


def kept_table(java: IcebergJava, folder: Path, *, version: int) -> Iterator[Kept]:
    """Engines keep catalogs open by name: each table has a catalog of its own."""
    warehouse = Warehouse(f"kept{next(_NUMBERS)}", folder)
    with configured(warehouse):
        table = warehouse.table("shop.events")
        changed(java, table, version=version)
        yield Kept.of(table)
