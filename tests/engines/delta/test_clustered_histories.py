"""Random histories of clustered tables that delta-spark and we cluster in turn, with writes between.

A model holds the rows. After each step delta-spark, delta-rs where it reads the table, and our reader show them; after
a night also by conditions that skip files. A night of ours leaves files of other providers, and a second plan finds
nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lake_rows import Rows, rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.runs import opened, optimize, shown

from nightkeep.model import Outcome

HISTORIES = 50
STEPS = 8
CLUSTERINGS = ("id", "day", "place.lat", "text", "id, day", "day, place.lat", "text, id", "id, day, place.lat")
COLUMNS = "id BIGINT, day DATE, place STRUCT<lat: INT, name: STRING>, text STRING"
PROPERTIES = (
    {"enableDeletionVectors": "true"},
    {"enableDeletionVectors": "false"},
    {"enableRowTracking": "true", "enableDeletionVectors": "true"},
    {"columnMapping.mode": "name", "enableDeletionVectors": "true"},
    {"dataSkippingNumIndexedCols": "5"},
    {"enableInCommitTimestamps": "true"},
    {"checkpointPolicy": "v2", "checkpointInterval": "3"},
    {"checkpointInterval": "2", "checkpoint.writeStatsAsStruct": "true", "checkpoint.writeStatsAsJson": "false"},
)
CONDITIONS = (
    "id BETWEEN 100 AND 180",
    "day = DATE'2026-01-08'",
    "place.lat < 9 AND id > 200",
    "text >= 't3' AND text < 't4'",
    "text IS NULL",
)


class History:
    """One table. `values` has the text of each row by its id; the other columns follow from the id."""

    def __init__(self, seed: int, folder: Path, spark: DeltaSpark, lakes: Lakes) -> None:
        self.random, self.table, self.spark, self.lakes = Random(seed), folder, spark, lakes
        self.properties = self.random.choice(PROPERTIES)
        self.columns = self.random.choice(CLUSTERINGS)
        self.values: dict[int, str | None] = {}
        self.next = 0
        self.steps: list[str] = []
        stated = ", ".join(f"'delta.{name}' = '{value}'" for name, value in self.properties.items())
        spark.sql(
            f"CREATE TABLE {named(folder)} ({COLUMNS}) USING delta CLUSTER BY ({self.columns}) TBLPROPERTIES ({stated})"
        )
        self.insert()

    def insert(self) -> None:
        """A third of a file to several files."""
        for _ in range(self.random.randint(1, 3)):
            self.spark.write(self.table, self._new_rows())

    def delete(self) -> None:
        rest = self.random.randrange(7)
        self.spark.sql(f"DELETE FROM {named(self.table)} WHERE id % 7 = {rest}")
        self.values = {key: value for key, value in self.values.items() if key % 7 != rest}

    def update(self) -> None:
        start = self.random.randrange(max(1, self.next))
        self.spark.sql(f"UPDATE {named(self.table)} SET text = 't3new' WHERE id BETWEEN {start} AND {start + 60}")
        self.values |= {key: "t3new" for key in self.values if start <= key <= start + 60}

    def merge(self) -> None:
        start = self.random.randrange(max(1, self.next))
        source = f"(SELECT {self._expressions()} FROM (SELECT id + {start} AS n FROM range(80)))"
        self.spark.sql(
            f"MERGE INTO {named(self.table)} AS t USING {source} AS s ON t.id = s.id"
            " WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET text = 'merged'"
            " WHEN NOT MATCHED THEN INSERT *"
        )
        for key in range(start, start + 80):
            if key not in self.values:
                self.values[key] = _text(key)
            elif key % 3 == 0:
                del self.values[key]
            else:
                self.values[key] = "merged"
        self.next = max(self.next, start + 80)

    def their_night(self) -> None:
        ours = self._files("nightkeep")
        self.spark.sql(f"OPTIMIZE {named(self.table)}")
        if self.columns:
            assert self._files("nightkeep").items() >= ours.items()

    def their_full_night(self) -> None:
        self.spark.sql(f"OPTIMIZE {named(self.table)} FULL" if self.columns else f"OPTIMIZE {named(self.table)}")

    def our_night(self) -> None:
        self._run()

    def our_full_night(self) -> None:
        self._run(full=True)

    def _run(self, *, full: bool = False) -> None:
        theirs = self._files("liquid")
        files = {"target_size": self.random.choice(("4KB", "16KB")), "min_file_size": "1KB"}
        done = optimize(self.table, full=full, **files)
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
        again = optimize(self.table, **files)
        assert again.outcome is Outcome.UNCHANGED, (again.outcome, again.reason)
        if self.columns:
            assert self._files("liquid") == theirs and not self._files(None)

    def other_columns(self) -> None:
        self.columns = self.random.choice(CLUSTERINGS)
        self.spark.sql(f"ALTER TABLE {named(self.table)} CLUSTER BY ({self.columns})")

    def no_columns(self) -> None:
        self.columns = ""
        self.spark.sql(f"ALTER TABLE {named(self.table)} CLUSTER BY NONE")

    def checkpoint(self) -> None:
        self.spark.checkpoint(self.table)

    def vacuum(self) -> None:
        with self.spark.configured({"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
            self.spark.sql(f"VACUUM {named(self.table)} RETAIN 0 HOURS")

    def check(self) -> None:
        self.spark.forget()
        expected = rows_of(_table(self.values)).ordered()
        assert self.spark.read(self.table) == expected == shown(self.table)
        if "columnMapping.mode" not in self.properties:
            assert self.lakes.delta_rs_read(self.table) == expected

    def check_filters(self) -> None:
        for where, found in zip(CONDITIONS, self.spark.find(self.table, CONDITIONS), strict=True):
            assert found.ordered() == shown(self.table, where=where) == self._matching(where), where

    def _matching(self, where: str) -> Rows:
        def holds(key: int) -> bool:
            text = self.values[key]
            return {
                CONDITIONS[0]: 100 <= key <= 180,
                CONDITIONS[1]: key % 30 == 7,
                CONDITIONS[2]: key * 31 % 97 < 9 and key > 200,
                CONDITIONS[3]: text is not None and "t3" <= text < "t4",
                CONDITIONS[4]: text is None,
            }[where]

        return rows_of(_table({key: text for key, text in self.values.items() if holds(key)})).ordered()

    def _files(self, provider: str | None) -> Mapping[str, int]:
        """Live files that a provider has clustered, with their sizes."""
        files = [file for unit in opened(self.table).snapshot().units for file in unit.files]
        return {file.path: file.bytes for file in files if file.raw.get("clusteringProvider") == provider}  # type: ignore[misc]

    def _new_rows(self) -> pa.Table:
        start, self.next = self.next, self.next + self.random.choice((40, 150, 600))
        rows: dict[int, str | None] = {key: _text(key) for key in range(start, self.next)}
        self.values |= rows
        return _table(rows)

    @staticmethod
    def _expressions() -> str:
        """The columns of a new row by `n`, its id, as `_table` makes them."""
        return (
            "n AS id, date_add(DATE'2026-01-01', CAST(n % 30 AS INT)) AS day,"
            " named_struct('lat', CAST(n * 31 % 97 AS INT), 'name', concat('n', n % 5)) AS place,"
            " IF(n % 11 = 0, NULL, concat('t', n)) AS text"
        )


def _text(key: int) -> str | None:
    return None if key % 11 == 0 else f"t{key}"


def _table(values: Mapping[int, str | None]) -> pa.Table:
    first = pa.scalar("2026-01-01").cast(pa.date32()).as_py().toordinal() - 719_163
    place = pa.struct([pa.field("lat", pa.int32()), pa.field("name", pa.string())])
    columns: dict[str, Any] = {
        "id": pa.array(list(values), pa.int64()),
        "day": pa.array([first + key % 30 for key in values], pa.int32()).cast(pa.date32()),
        "place": pa.array([{"lat": key * 31 % 97, "name": f"n{key % 5}"} for key in values], place),
        "text": pa.array(list(values.values()), pa.string()),
    }
    return pa.table(columns)


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_rows_stay_whoever_clusters(seed: int, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    history = History(seed, tmp_path / "events", delta_spark, lakes)
    history.check()
    written = (history.insert, history.insert, history.delete, history.update, history.merge)
    nights = (
        history.our_night,
        history.our_night,
        history.our_full_night,
        history.their_night,
        history.their_full_night,
    )
    rare = (history.other_columns, history.no_columns, history.checkpoint, history.vacuum)
    kinds = (written, written, nights, nights, rare)
    steps = [history.random.choice(history.random.choice(kinds)) for _ in range(STEPS)]
    for step in (*steps, history.insert, history.our_night, history.delete, history.their_night):
        history.steps.append(step.__name__)
        try:
            step()
            history.check()
            if "night" in step.__name__:
                history.check_filters()
        except Exception as failure:
            raise AssertionError(f"seed {seed}: {', '.join(history.steps)}") from failure
