"""Honest histories of Delta tables, by delta-spark and deltalake: no false alarm, and each maintenance commit proven.

Each is audited in steps with the mark kept in between, and once whole. NIGHTKEEP_AUDIT_SEEDS=first:last chooses others.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lakes_oracle import Lakes
from tests.support.extended import some_extended

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import RunDocument

pytestmark = [pytest.mark.slow]

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_AUDIT_SEEDS", "0:6").split(":"))
LEAST, LEAST_OF_DELTALAKE = 8, 12
"""Maintenance commits of a history that are proven."""
DAYS = ("2026-11-01", "2026-11-02")
PROPERTIES: Mapping[str, str] = {
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "row ids": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
    "auto compaction": "'delta.autoOptimize.autoCompact' = 'true'",
    "mapped columns": "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
}


class Audits:
    """A table, and the audits of it."""

    def __init__(self, table: Path) -> None:
        self.table, self.proven = table, 0

    def audit(self) -> None:
        self.proven += self._proven(nightkeep.audit(f"delta:{self.table}", reports=self.table.parent / "reports"))

    def audit_whole(self) -> None:
        """As many are proven as in steps."""
        self.audit()
        whole = nightkeep.audit(f"delta:{self.table}", since=0, reports=self.table.parent / "whole")
        assert self._proven(whole) == self.proven

    def _proven(self, document: RunDocument) -> int:
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.SKIPPED), document.reason
        section: Any = document.extra["audit"]
        assert not section["vanished"]
        keeping = [each for each in section["commits"] if each["claim"] == "keeps-rows"]
        assert {each["verdict"] for each in keeping} <= {"proven"}, document.reason
        return len(keeping)


def changes(table: Path, chance: random.Random, number: int) -> list[str]:
    """Two inserts of one day, and perhaps a change of rows."""
    name, day, below = named(table), chance.choice(DAYS), chance.randrange(number * 100 + 100)
    inserts = [
        f"INSERT INTO {name} VALUES "
        + ", ".join(
            f"({number * 100 + 10 * part + i}, {chance.random()}, 'n{i}', DATE '{day}')"
            for i in range(chance.randint(1, 9))
        )
        for part in range(2)
    ]
    others = [
        f"DELETE FROM {name} WHERE id % 7 = {below % 7}",
        f"UPDATE {name} SET note = 'u{number}' WHERE id % 5 = {below % 5}",
        f"MERGE INTO {name} t USING (SELECT {below} AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ]
    return [*inserts, *chance.sample(others, chance.randrange(2))]


def maintenance(table: Path, chance: random.Random) -> str:
    name = named(table)
    whole = [f"OPTIMIZE {name}", f"OPTIMIZE {name} ZORDER BY (id, price)"]
    return chance.choice(
        [*whole, *whole, f"OPTIMIZE {name} WHERE day = DATE '{DAYS[0]}'", f"REORG TABLE {name} APPLY (PURGE)"]
    )


@pytest.mark.parametrize(
    ("kind", "seed"), some_extended([(kind, seed) for seed in range(FIRST, LAST) for kind in PROPERTIES], keep=1)
)
def test_what_delta_spark_does(delta_spark: DeltaSpark, tmp_path: Path, kind: str, seed: int) -> None:
    chance, audits = random.Random(f"{kind} {seed}"), Audits(tmp_path / "t")
    name, columns = named(audits.table), "id LONG, price DOUBLE, note STRING, day DATE"
    least = "spark.databricks.delta.autoCompact.minNumFiles"
    delta_spark.sql(
        f"CREATE TABLE {name} ({columns}) USING delta PARTITIONED BY (day) TBLPROPERTIES ({PROPERTIES[kind]})",
        f"SET {least} = 2",
    )
    try:
        for number in range(30):
            delta_spark.sql(*changes(audits.table, chance, number), maintenance(audits.table, chance))
            if chance.random() < 0.2:
                audits.audit()
            if number > LEAST and audits.proven >= LEAST:
                break
        audits.audit_whole()
        assert audits.proven >= LEAST
    finally:
        delta_spark.sql(f"RESET {least}")


@pytest.mark.parametrize("seed", some_extended(range(FIRST, 2 * LAST), keep=1))
def test_what_deltalake_does(lakes: Lakes, tmp_path: Path, seed: int) -> None:
    """Appends, deletes, compactions, Z-orders, checkpoints and vacuums that keep what versions need."""
    chance, audits = random.Random(seed), Audits(tmp_path / "t")
    for number in range(24):
        for part in range(2):
            first = number * 100 + 10 * part
            ids = range(first, first + chance.randint(1, 9))
            notes = [chance.choice(("a", "b", None)) for _ in ids]
            lakes.delta_rs_append(audits.table, pa.table({"id": pa.array(ids, pa.int64()), "note": notes}))
        if chance.random() < 0.3:
            lakes.delta_rs_delete(audits.table, f"id % 7 = {chance.randrange(7)}")
        if chance.random() < 0.5:
            lakes.delta_rs_optimize(audits.table)
        elif chance.random() < 0.8:
            lakes.delta_rs_z_order(audits.table, ("id",))
        elif chance.random() < 0.5:
            lakes.delta_rs_checkpoint(audits.table)
        else:
            lakes.delta_rs_vacuum(audits.table, retention_hours=200, dry_run=False)
        if chance.random() < 0.2:
            audits.audit()
    audits.audit_whole()
    assert audits.proven >= LEAST_OF_DELTALAKE
