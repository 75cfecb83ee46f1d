"""Statistics that cannot be understood: readers need none of them, and so does every operation of ours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.log_edits import rewrite_adds
from tests.formats.delta.runs import optimize, shown
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.check import check
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest, Evidence
from nightkeep.records.document import CheckStatus

Forge = Callable[[dict[str, Any]], Any]


def bound(column: str, value: Any) -> Forge:
    def forge(stats: dict[str, Any]) -> dict[str, Any]:
        return {**stats, "minValues": {**stats["minValues"], column: value}}

    return forge


def part(name: str, value: Any) -> Forge:
    return lambda stats: {**stats, name: value}


FORGED: dict[str, Forge] = {
    "a number as text": bound("n", "seven"),
    "a text as number": bound("t", 7),
    "a day that is none": bound("d", "2024-02-31"),
    "half a pair of surrogates": bound("t", "\ud83d"),
    "a list": bound("n", [1]),
    "no bounds": part("minValues", None),
    "bounds as text": part("maxValues", "x"),
    "null counts as text": part("nullCount", {"n": "none", "t": None}),
    "rows as text": part("numRecords", "4"),
    "rows with a point": part("numRecords", 4.0),
    "null": lambda stats: None,
    "a list of all": lambda stats: [stats],
}


def forge(table: Path, change: Forge) -> None:
    rewrite_adds(table, lambda add: add.update(stats=json.dumps(change(json.loads(add["stats"])))))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(list(FORGED), keep=2))
def test_a_forged_statistic_costs_nothing_but_itself(
    delta_spark: DeltaSpark, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (n BIGINT, t STRING, d DATE) USING delta",
        *(
            f"INSERT INTO {named(table)} SELECT /*+ COALESCE(1) */ id, concat('text ', id),"
            f" DATE '2024-02-01' + CAST(id AS INT) FROM range({first}, {first + 4}, 1, 1)"
            for first in (0, 4, 8)
        ),
    )
    rows = delta_spark.read(table).rows
    forge(table, FORGED[name])
    delta_spark.forget()
    address = f"delta:{table}"
    for where in ("n = 5", "t = 'text 6'", "d > DATE '2024-02-07'"):
        ours = shown(table, where)
        assert len(ours.rows) in (1, 5) and set(ours.rows) <= set(rows), where
    assert nightkeep.advise(address).table
    assert nightkeep.status(address, reports=str(tmp_path / "r"))[0].metrics
    told = optimize(table, full=True, clustering={"zorder": ["n", "t", "d"]})
    assert (told.outcome, told.reason) == (Outcome.VERIFIED, None)
    report = check(CheckRequest(Address("delta", str(table), "t"), evidence=Evidence.ROWS), spark=spark)
    assert report.status is CheckStatus.PASSED, report
    assert delta_spark.read(table).rows == rows
