"""Random histories: others append, delete and write checkpoints, we lay anew; no row is lost, doubled or renamed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.hand_made import HandMade, rows_of
from tests.formats.delta.runs import opened, optimize
from tests.support.extended import some_extended

from nightkeep.formats.delta.data.columns import ROW_ID
from nightkeep.model import Operation, Outcome, View

DAYS = ("2026-11-01", "2026-11-02")
STEPS = 14
SEEDS = range(12)

Truth = dict[tuple[str | None, int], tuple[Any, ...]]


class History:
    """A table and what it must hold: (day, id) -> price and note."""

    def __init__(self, made: HandMade, random: Random) -> None:
        self.made, self.random, self.truth, self.ids = made, random, Truth(), dict[tuple[str, int], int]()
        self._next = self.published = 0

    def append(self, days: Sequence[str | None] = (*DAYS, None)) -> None:
        day, ids = self.random.choice(days), range(self._next, self._next + self.random.randrange(1, 60))
        self._next = ids.stop
        self.made.append(day, ids)
        for row in rows_of(ids).to_pylist():
            self.truth[day, row["id"]] = (row["price"], row["note"])

    def delete(self, days: Sequence[str] = DAYS) -> None:
        """Some of a day, all of it, or some of its last rows, so that vectors lie in several files."""
        day = self.random.choice(days)
        held = [number for other, number in self.truth if other == day]
        share, since = self.random.choice(((1.0, 0), (0.3, 0), (0.3, self._next - 50), (0.5, self._next - 30)))
        gone = [number for number in held if number >= since and self.random.random() < share]
        if gone:
            self.made.delete(day, gone)
        for number in gone:
            del self.truth[day, number]

    def checkpoint(self) -> None:
        self.made.checkpoint()

    def pack(self) -> None:
        self._run(full=self.random.random() < 0.3, target_size=self.random.choice(("1MB", "2KB")), min_file_size="1KB")

    def cluster(self) -> None:
        curve = self.random.choice(("zorder", "hilbert"))
        columns = self.random.choice((["id"], ["price", "note"], ["note", "id", "price"]))
        self._run(clustering={curve: columns}, target_size=self.random.choice(("1MB", "2KB")))

    def rebuild(self) -> None:
        for _ in range(4):
            self.append(DAYS[:1])
            self.delete(DAYS[:1])
        self._run(operation=Operation.PERSIST_DELETES, full=self.random.random() < 0.7)

    def _run(self, **settings: Any) -> None:
        levels = {"verify": self.random.choice(("full", "touched"))}
        sizes = {"commit_size": self.random.choice(("1B", "1GB"))}
        document = optimize(self.made.folder, **levels, **sizes, **settings)
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason
        self.published += document.outcome is Outcome.VERIFIED

    def check(self) -> None:
        """By a replay of the tests' own, and by our reader, which tells row ids."""
        expected = sorted(((*key, *values) for key, values in self.truth.items()), key=repr)
        assert self.made.rows() == expected
        table, found = opened(self.made.folder), list[tuple[Any, ...]]()
        for unit in table.snapshot().units:
            for batch in table.gate.rows(unit, table.gate.survivors(unit, View.RAW)):
                found += [(str(r["day"]), r["id"], r["price"], r["note"], r.get(ROW_ID)) for r in batch.to_pylist()]
        assert sorted((row[:4] for row in found), key=repr) == sorted(((str(r[0]), *r[1:]) for r in expected), key=repr)
        for day, number, _, _, row_id in found:
            assert self.ids.setdefault((day, number), row_id) == row_id
        tracked = [row_id for *_, row_id in found if row_id is not None]
        assert len(set(tracked)) == len(tracked)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(SEEDS, keep=4))
def test_rows_survive_whatever_happens(seed: int, lakes: Lakes, tmp_path: Path) -> None:
    random = Random(seed)
    history = History(HandMade(tmp_path / "events", row_ids=seed % 2 == 1), random)
    others: list[Callable[[], None]] = [history.append, history.append, history.delete, history.checkpoint]
    ours: list[Callable[[], None]] = [history.pack, history.cluster, history.rebuild]
    history.append()
    for _ in range(STEPS):
        step = random.choice(random.choice((others, ours)))
        step()
        history.check()
    assert history.published
    assert len(lakes.duckdb_read(history.made.folder).rows) == len(history.truth)
    assert len(lakes.delta_rs_read(history.made.folder).rows) == len(history.truth)
