"""One table of a catalog, for Java and for us, that nights optimize; what must not change is compared each time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.drivers.iceberg_java import IcebergJava, Layout, Written
from tests.drivers.iceberg_tables import Column, Table
from tests.formats.iceberg import runs

from nightkeep.formats.iceberg.format import IcebergTable
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Clustering, Curve, Operation, Outcome, Plan, Request
from nightkeep.records import RunDocument
from nightkeep.stages.plan import plan

COLUMNS: Sequence[Column] = (("id", "long"), ("k", "int"), ("v", "string"))
LINEAGE = ("_row_id", "_last_updated_sequence_number")
_NIGHTS = count()


@dataclass(frozen=True)
class OptimizedLake:
    java: IcebergJava
    table: Table

    def create(self, columns: Sequence[Column] = COLUMNS, **layout: Any) -> None:
        self.java.create(self.table, columns, Layout(**layout))

    def append(self, rows: Sequence[Any], **how: Any) -> int:
        return self.java.append(self.table, rows, **how)

    def commit(self, *written: Written, **how: Any) -> int:
        return self.java.commit(self.table, *written, **how)

    def delete(self, rows: Sequence[Any], *keys: str, **how: Any) -> None:
        """A commit of one equality delete file."""
        self.commit(self.java.equality_deletes(self.table, rows, keys=keys, **how))

    @property
    def opened(self) -> IcebergTable:
        return runs.opened(self.table)

    @property
    def snapshot(self) -> IcebergSnapshot:
        return self.opened.snapshot()

    def shown(self) -> tuple[Any, ...]:
        """Java's rows; with what it knows of each from version 3 on."""
        lineage = LINEAGE if self.snapshot.schema.has_row_lineage else ()
        names = [each.name for each in self.snapshot.schema.current.fields]
        return self.java.read(self.table, columns=[*names, *lineage]).rows

    def live(self, *contents: int) -> list[dict[str, Any]]:
        entries = self.java.entries(self.table)
        return [each for each in entries if each["content"] in (contents or (0,)) and each["status"] != 2]

    def plan(self, **asked: Any) -> Plan:
        return plan(self.opened, self.snapshot, request(**asked))

    def night(self, **settings: Any) -> RunDocument:
        """One run, after which Java shows the same, whatever came of it."""
        before = self.shown()
        done = runs.care_for(self.table, run_id=f"night {next(_NIGHTS)}", operation=Operation.OPTIMIZE, **settings)
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), (done.outcome, done.reason)
        assert self.shown() == before
        return done

    def summary(self) -> Mapping[str, str]:
        return self.snapshot.summary


def request(**asked: Any) -> Request:
    return Request(Operation.OPTIMIZE, 1_795_000_000_000, **asked)


def by(*columns: str, curve: Curve = Curve.Z) -> Clustering:
    return Clustering(columns, curve)


def grid(first: int, last: int) -> list[list[Any]]:
    return [[n, n % 7, f"row {n}"] for n in range(first, last)]
