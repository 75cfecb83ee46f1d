"""A table without keys, written by Paimon Java: random columns and rows, deletes, and what Java's readers see."""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import JavaFile, Layout, Scan, Writer
from tests.drivers.random_values import PRIMITIVES, WIDER, random_value
from tests.formats.paimon.upgrade import policy

from nightkeep.admission.order import Order
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.reading.buckets import bucket_of
from nightkeep.model import Operation
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

DAY, ID, SHARD = ("day", "STRING"), ("id", "INT"), ("shard", "INT")
FIXED = {"bucket": "2", "bucket-key": "shard", "write-only": "true"}
"""Options of a table whose buckets keep the order of rows. Its rows have a shard."""
VALUES = (*(("v" + str(n), kind) for n, kind in enumerate(PRIMITIVES)),)
VECTORS = {"deletion-vectors.enabled": "true"}
SMALL = {"target-file-size": "30 kb", "compaction.min.file-num": "2"}
DAYS = ("2026-11-01", "a b=c%")

Rows = list[tuple[Any, ...]]


@dataclass
class Appended:
    """A table's folder, the engine that writes it, and its columns now; `id` numbers its rows."""

    java: PaimonJava
    folder: Path
    random: Random
    columns: list[tuple[str, str]]
    partitioned: bool = True
    buckets: int = -1
    written: int = field(default=0)

    @classmethod
    def create(
        cls,
        java: PaimonJava,
        folder: Path,
        options: Mapping[str, str],
        *,
        seed: object = 1,
        columns: Sequence[tuple[str, str]] = VALUES,
        partitioned: bool = True,
    ) -> "Appended":
        first = [ID, DAY, SHARD] if "bucket-key" in options else [ID, DAY]
        made = cls(java, folder, Random(str(seed)), [*first, *columns], partitioned, int(options.get("bucket", -1)))
        keys = [DAY[0]] if partitioned else []
        java.create(folder, Layout(made.columns, (), keys, {"bucket": "-1", **options}))
        return made

    def append(self, rows: int, *, days: Sequence[str | None] = DAYS) -> None:
        """One commit, of one new file for each day."""
        self.java.write(self.folder, [("+I", *self._row(days)) for _ in range(rows)], Writer(user="writer"))

    def delete(self, share: float, *, files: float = 1.0) -> None:
        """Java deletes about this share of the rows of some files."""
        positions = self.some_positions(share, files=files)
        if positions:
            self.java.delete_positions(self.folder, positions, user="writer")

    def some_positions(self, share: float, *, files: float = 1.0) -> Mapping[str, list[int]]:
        # Java orders files of a bucket by their names, which differ from run to run. The least id does not.
        every = sorted(self.files(), key=lambda file: repr((file.partition, file.value_stats.get("id"), file.rows)))
        chosen = [file for file in every if self.random.random() < files]
        picked = {f.name: [at for at in range(f.rows) if self.random.random() < share] for f in chosen}
        return {name: at for name, at in picked.items() if at}

    def alter(self) -> None:
        """Adds, renames, widens or drops a column."""
        free = [(name, kind) for name, kind in self.columns if name not in (ID[0], DAY[0], SHARD[0])]
        event = self.random.choice(("add", "rename", "widen", "drop"))
        name, kind = self.random.choice(free)
        at = self.columns.index((name, kind))
        if event == "rename":
            self.columns[at] = (f"{name}r", kind)
            self._change(change="rename_column", name=name, to=f"{name}r")
        elif event == "widen" and kind in WIDER:
            self.columns[at] = (name, WIDER[kind])
            self._change(change="change_type", name=name, type=WIDER[kind])
        elif event == "drop" and len(free) > 2:
            del self.columns[at]
            self._change(change="drop_column", name=name)
        else:
            added = (f"a{self.random.getrandbits(32)}", self.random.choice(PRIMITIVES))
            self.columns.append(added)
            self._change(change="add_column", name=added[0], type=added[1])

    def rows(self, snapshot: int | None = None) -> Rows:
        options = {} if snapshot is None else {"scan.snapshot-id": str(snapshot)}
        return sorted(self.java.read(self.folder, Scan(options=options)).rows, key=repr)

    def ordered(self) -> Mapping[tuple[str, int], Rows]:
        """The rows of each day and bucket in Java's order of reading."""
        found: defaultdict[tuple[str, int], Rows] = defaultdict(list)
        for row in self.java.read(self.folder).rows:
            bucket = bucket_of(encode_row([row[2]], [parse_type("INT")]), self.buckets)
            found[str(row[1]) if self.partitioned else "", bucket].append(row)
        return dict(found)

    def files(self) -> tuple[JavaFile, ...]:
        return self.java.files(self.folder)

    def vectors(self) -> Mapping[str, Sequence[int]]:
        """Deleted positions by data file, as Java reads them. Every file has at most one vector."""
        every = self.java.vectors(self.folder)
        found = [(name, held["positions"]) for entry in every for name, held in entry.files.items()]
        assert len({name for name, _ in found}) == len(found)
        return dict(found)

    def files_by_day(self) -> Mapping[str, list[JavaFile]]:
        found: defaultdict[str, list[JavaFile]] = defaultdict(list)
        for file in self.files():
            found[str(file.partition)].append(file)
        return found

    def optimize(self, *, run_id: str | None = None, dry_run: bool = False, **settings: object) -> RunDocument:
        return operate(self.folder, Operation.OPTIMIZE, run_id=run_id, dry_run=dry_run, **settings)

    def delete_where(self, rows: str | None = None, *, run_id: str | None = None, **how: Any) -> RunDocument:
        """Our own delete, of the rows that a condition is true for or that have one of the `keys` of a file."""
        return operate(self.folder, Operation.DELETE, run_id=run_id, rows=rows, **how)

    def update_where(self, rows: str, sets: Sequence[str], *, run_id: str | None = None, **how: Any) -> RunDocument:
        """Our own update, of the rows that a condition is true for."""
        return operate(self.folder, Operation.UPDATE, run_id=run_id, rows=rows, sets=sets, **how)

    def _row(self, days: Sequence[str | None]) -> tuple[Any, ...]:
        self.written += 1
        first = {ID[0]: self.written, DAY[0]: self.random.choice(days), SHARD[0]: self.random.randrange(6)}
        return tuple(first[name] if name in first else self._value(kind) for name, kind in self.columns)

    def _value(self, kind: str) -> Any:
        return None if self.random.random() < 0.15 else random_value(kind, self.random)

    def _change(self, **change: str) -> None:
        self.java.alter(self.folder, change)


def operate(
    table: Path,
    operation: Operation,
    *,
    run_id: str | None = None,
    dry_run: bool = False,
    rows: str | None = None,
    keys: Path | None = None,
    sets: Sequence[str] = (),
    **settings: object,
) -> RunDocument:
    """Plan, rewrite, prove and publish in this process."""
    order = Order(
        operation,
        run_id=run_id or f"test-{uuid.uuid4().hex}",
        reports=str(table.parent / f"{table.name}-reports"),
        dry_run=dry_run,
        rows=rows,
        keys=keys,
        sets=tuple(sets),
    )
    return run_operation(policy(table, **settings), order, mapper=lambda: inline)
