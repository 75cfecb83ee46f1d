"""Random lives of clustered tables: appends, deletes, other providers, other columns, and our nights between them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.delta.clustered_lake import adds, cluster_by, clustered, provided, rows_of
from tests.formats.delta.lake import Lake, request
from tests.support.examples import examples

from nightkeep.formats.delta.metadata.leaf_columns import leaves

COLUMNS = (["id"], ["price"], ["text"], ["deep", "x"], ["deep", "y"])
STEPS = ("append", "append", "night", "night", "provided", "deleted", "columns", "none")


class Life:
    """One table. Every night is proven by the gate, and held here to what the table's feature asks for."""

    def __init__(self, folder: Any, seed: int) -> None:
        self.random = Random(seed)
        few = {"dataSkippingNumIndexedCols": "1"} if self.random.random() < 0.3 else {}
        self.columns: list[list[str]] = self._some_columns()
        self.lake: Lake = clustered(folder, self.columns, **few)
        self.count = self.nights = 0

    def step(self) -> None:
        getattr(self, f"_{self.random.choice(STEPS)}")()

    def _append(self) -> None:
        self.lake.append(self._rows(), files=self.random.randint(1, 6))

    def _provided(self) -> None:
        provided(self.lake, self._rows(), self.random.choice(["liquid", "other"]), files=self.random.randint(1, 3))

    def _deleted(self) -> None:
        chosen = [file for file in self.lake.files if self.random.random() < 0.3 and not file.deletes]
        shares = [self.random.choice([0.02, 0.3, 1.0]) for _ in chosen]
        gone = {
            file.path: range(max(1, int(share * (file.rows or 1)))) for file, share in zip(chosen, shares, strict=True)
        }
        if gone:
            self.lake.mark(gone)

    def _columns(self) -> None:
        self.columns = self._some_columns()
        cluster_by(self.lake, self.columns)

    def _none(self) -> None:
        self.columns = []
        cluster_by(self.lake, [])

    def _night(self) -> None:
        before, rows = adds(self.lake), self.lake.rows()
        asked = request(target_bytes=self.random.choice([4_000, 20_000]), full=self.random.random() < 0.2)
        # Nights are a day apart: it is known which files an earlier one has written.
        self.nights += 1
        self.lake.run(replace(asked, now_ms=asked.now_ms + self.nights * 86_400_000))
        after = adds(self.lake)
        assert self.lake.rows() == rows
        assert not self.lake.plan(request(target_bytes=asked.target_bytes)).units
        if self.columns:
            self._require_clustered(before, after)

    def _require_clustered(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        theirs = {path for path, add in before.items() if add.get("clusteringProvider") not in (None, "nightkeep")}
        assert all(after[path] == before[path] for path in theirs)
        assert all(add["clusteringProvider"] == "nightkeep" for path, add in after.items() if path not in theirs)
        named = {leaf.stored for leaf in leaves(self.lake.snapshot.schema)} & {tuple(path) for path in self.columns}
        for path in after.keys() - before.keys():
            nulls = json.loads(after[path]["stats"])["nullCount"]
            assert all(_holds(nulls, column) for column in named)

    def _rows(self) -> Any:
        start = self.count
        self.count += self.random.randint(1, 400)
        return rows_of(range(start, self.count), self.random.randint(0, 9))

    def _some_columns(self) -> list[list[str]]:
        return self.random.sample(COLUMNS, self.random.randint(1, 3))


def _holds(values: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if name not in values:
            return False
        values = values[name]
    return True


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 1 << 32))
def test_rows_and_files_of_others_stay(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    life = Life(tmp_path_factory.mktemp("life") / "t", seed)
    for _ in range(12):
        life.step()
