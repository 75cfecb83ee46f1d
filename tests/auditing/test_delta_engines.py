"""Audits of what delta-spark and delta-rs commit: honest maintenance is proven, a stale compaction is found."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lakes_oracle import Lakes
from tests.support.extended import some_extended

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import RunDocument

DAYS = ("2026-11-01", "2026-11-02")


def audit(table: Path, reports: Path, **options: Any) -> RunDocument:
    return nightkeep.audit(f"delta:{table}", reports=reports, **options)


def verdicts(document: RunDocument) -> dict[int, dict[str, Any]]:
    section: Any = document.extra["audit"]
    return {each["version"]: each for each in section["commits"]}


PROPERTIES = {
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "row ids": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'",
    "auto compaction": "'delta.autoOptimize.autoCompact' = 'true'",
    "mapped columns": "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
}


def statement(table: Path, chance: random.Random, number: int) -> str:
    name, day = named(table), chance.choice(DAYS)
    some = ", ".join(
        f"({number * 100 + i}, {chance.random()}, 'n{i}', DATE '{day}')" for i in range(chance.randint(1, 9))
    )
    below = chance.randrange(number * 100 + 1)
    return chance.choice(
        [
            *[f"INSERT INTO {name} VALUES {some}"] * 4,
            f"DELETE FROM {name} WHERE id % 7 = {below % 7}",
            f"UPDATE {name} SET note = 'u{number}' WHERE id % 5 = {below % 5}",
            f"MERGE INTO {name} t USING (SELECT {below} AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            *[f"OPTIMIZE {name}"] * 2,
            f"OPTIMIZE {name} ZORDER BY (id, price)",
            f"OPTIMIZE {name} WHERE day = DATE '{day}'",
            f"REORG TABLE {name} APPLY (PURGE)",
        ]
    )


@pytest.mark.parametrize(
    ("kind", "seed"), some_extended([(kind, seed) for seed in range(8) for kind in PROPERTIES], keep=2)
)
def test_honest_maintenance_of_delta_spark_raises_no_alarm(
    delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path, kind: str, seed: int
) -> None:
    chance, table = random.Random(seed), tmp_path / "t"
    columns = "id LONG, price DOUBLE, note STRING, day DATE"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} ({columns}) USING delta PARTITIONED BY (day) TBLPROPERTIES ({PROPERTIES[kind]})"
    )
    for number in range(1, 31):
        if kind == "vectors" and chance.random() < 0.1:
            lakes.delta_rs_optimize(table)
        else:
            delta_spark.sql(statement(table, chance, number))
        if chance.random() < 0.15:
            document = audit(table, tmp_path / "reports")
            assert document.outcome is not Outcome.MISMATCH, document.reason
    whole = audit(table, tmp_path / "whole")
    keeping = [each for each in verdicts(whole).values() if each["claim"] == "keeps-rows"]
    assert keeping and {each["verdict"] for each in keeping} == {"proven"}, whole.reason
    assert whole.outcome is Outcome.VERIFIED, whole.reason
