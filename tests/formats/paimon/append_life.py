"""Random lives of tables without keys, and what must be true of one whoever deletes from it or compacts it."""

from collections.abc import Mapping
from itertools import filterfalse
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction
from tests.formats.paimon.appended import FIXED, VALUES, Appended, Rows

from nightkeep.clustering import tuning
from nightkeep.formats.paimon.data import columns
from nightkeep.kernels import row_groups
from nightkeep.model import Outcome

OPTIONS = (
    ("deletion-vectors.enabled", 0.8, ("true",)),
    ("deletion-vectors.bitmap64", 0.3, ("true",)),
    ("deletion-vector.index-file.target-size", 0.4, ("1 b", "100 b")),
    ("index-file-in-data-file-dir", 0.2, ("true",)),
    ("target-file-size", 0.9, ("4 kb", "20 kb", "60 kb")),
    ("compaction.min.file-num", 0.7, ("2", "3")),
    ("compaction.delete-ratio-threshold", 0.3, ("0", "0.5", ".9")),
    ("compaction.small-file-ratio", 0.2, ("0.3", "1.0")),
    ("file.compression", 0.4, ("none", "snappy")),
    ("metadata.stats-mode", 0.3, ("none", "counts", "full", "truncate(4)")),
    ("metadata.stats-dense-store", 0.2, ("false",)),
    ("partition.legacy-name", 0.2, ("false",)),
    ("manifest.merge-min-count", 0.3, ("2", "3")),
)


SETS = ("id = -id",)


class Life:
    """A table, and what must be true of it whoever compacts it."""

    def __init__(self, java: PaimonJava, folder: Path, seed: int) -> None:
        self.random = random = Random(f"append {seed}")
        options = {name: random.choice(values) for name, share, values in OPTIONS if random.random() < share}
        self.fixed = seed % 3 == 2
        options |= FIXED if self.fixed else {}
        kinds = random.sample(VALUES, random.randrange(2, 7))
        self.table = Appended.create(java, folder, options, seed=seed, columns=kinds, partitioned=random.random() < 0.7)
        self.told = [str(options)]

    def live(self) -> None:
        self.append()
        for _ in range(self.random.randrange(6, 14)):
            event = self.random.choice(EVENTS)
            self.told.append(event.__name__)
            event(self)
        self.append()
        self.optimize()

    def append(self) -> None:
        for _ in range(self.random.choice((1, 1, 2, 4))):
            self.table.append(self.random.choice((1, 20, 150)), days=self.random.choice((("d1",), ("d1", None, "d/2"))))

    def delete(self) -> None:
        if "deletion-vectors.enabled" in self.told[0] and self.table.written:
            self.table.delete(self.random.choice((0.02, 0.3, 1.0)), files=self.random.random())

    def delete_ours(self) -> None:
        """Of every row that Java shows, those with the condition go, and no other."""
        if "'deletion-vectors.enabled'" not in self.told[0]:
            return
        before, order, first = self.table.rows(), self.order(), self.random.randrange(self.table.written)
        last = first + self.random.choice((0, 30, 10_000))
        document = self.table.delete_where(f"id BETWEEN {first} AND {last} AND (day IS NULL OR day = 'd1')")
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason

        def staying(rows: Rows) -> Rows:
            return [row for row in rows if not first <= row[0] <= last or row[1] == "d/2"]

        assert self.table.rows() == staying(before)
        assert self.order() == {place: left for place, rows in order.items() if (left := staying(rows))}

    def update_ours(self) -> None:
        """Of every row that Java shows, those with the condition have another number, and no other changes."""
        if "'deletion-vectors.enabled'" not in self.told[0]:
            return
        before, order, first = self.table.rows(), self.order(), self.random.randrange(self.table.written)
        last = first + self.random.choice((0, 30, 10_000))
        document = self.table.update_where(f"id BETWEEN {first} AND {last} AND (day IS NULL OR day = 'd1')", SETS)
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason

        def is_set(row: tuple[Any, ...]) -> bool:
            return first <= row[0] <= last and row[1] != "d/2"

        changed = [(-row[0], *row[1:]) if is_set(row) else row for row in before]
        assert self.table.rows() == sorted(changed, key=repr)
        assert self.order() == {
            place: [*filterfalse(is_set, rows), *((-row[0], *row[1:]) for row in filter(is_set, rows))]
            for place, rows in order.items()
        }

    def order(self) -> Mapping[object, Rows]:
        """The rows of each bucket that keeps their order."""
        return dict(self.table.ordered()) if self.fixed else {}

    def alter(self) -> None:
        self.table.alter()

    def compact(self) -> None:
        """Java's own. Of fixed buckets one pick: its writer cannot commit a second one of a file that it just wrote."""
        before = self.table.rows()
        full = self.fixed and self.random.random() < 0.3
        self.table.java.compact(self.table.folder, Compaction(full=full, single_pick=self.fixed))
        assert self.table.rows() == before

    def expire(self) -> None:
        before = self.table.rows()
        self.table.java.expire(self.table.folder)
        assert self.table.rows() == before

    def optimize(self) -> None:
        """No row changes, of this version nor of the one before, vectors are of live files, and nothing is left."""
        snapshot = self.table.java.snapshot(self.table.folder)
        assert snapshot is not None
        before, order, then = self.table.rows(), self.order(), self.table.rows(snapshot["id"])
        settings = {
            "full": self.random.random() < 0.2,
            "verify": self.random.choice(("full", "touched")),
            **self.curve(),
        }
        document = self.table.optimize(**settings)
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason
        assert (self.table.rows(), self.order(), self.table.rows(snapshot["id"])) == (before, order, then)
        assert self.table.vectors().keys() <= {file.name for file in self.table.files()}
        again = self.table.optimize(**{**settings, "full": False})
        assert again.outcome is Outcome.UNCHANGED, again.plan

    def curve(self) -> dict[str, object]:
        """Columns to cluster by, where they have statistics; half of the time, none."""
        chosen = self.random.sample([name for name, kind in self.table.columns if name != "day"], 2)
        curve = self.random.choice((None, None, "zorder", "hilbert"))
        without = "'none'" in self.told[0] or "'counts'" in self.told[0]
        return {} if curve is None or without or self.fixed else {"clustering": {curve: chosen}}


EVENTS = (
    Life.append,
    Life.append,
    Life.append,
    Life.delete,
    Life.delete_ours,
    Life.update_ours,
    Life.delete,
    Life.alter,
    Life.compact,
    Life.expire,
    Life.optimize,
    Life.optimize,
)


def check_life(java: PaimonJava, seed: int, folder: Path) -> None:
    """The life of a seed; a failure tells its events."""
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            # Small tables reach what happens between row groups, batches and spilled buckets.
            patch.setattr(row_groups, "ROW_GROUP_ROWS", 50)
            patch.setattr(columns, "BATCH_ROWS", 37)
            patch.setattr(tuning, "LEAST_BATCH_ROWS", 16)
        life = Life(java, folder, seed)
        try:
            life.live()
        except Exception as failure:
            failure.add_note(f"history {seed}: {'; '.join(life.told)}")
            raise
