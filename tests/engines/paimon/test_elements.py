"""Arrays and maps that a merge engine joins: Java writes them, Java and Nightkeep compact copies, Spark checks both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Row, Scan
from tests.drivers.random_elements import FLAT, alike
from tests.formats.paimon.upgrade import optimize, upgrade
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.formats.paimon.gate import merged
from nightkeep.formats.paimon.gate.merged_elements import elements
from nightkeep.formats.paimon.metadata.merge_engine import Function
from nightkeep.formats.paimon.rewrite.element_fold import ElementFold
from nightkeep.model import Address, Outcome
from nightkeep.model.arrow_types import ChunkedArray
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

ROWS = json.dumps({"type": "ARRAY", "element": FLAT})
COLUMNS = [
    ("k", "INT NOT NULL"),
    ("g", "INT"),
    ("listed", json.dumps({"type": "ARRAY", "element": "DOUBLE"})),
    ("known", json.dumps({"type": "ARRAY", "element": "STRING"})),
    ("entries", json.dumps({"type": "MAP", "key": "STRING", "value": "INT"})),
    ("newest", ROWS),
    ("partly", ROWS),
    ("some", ROWS),
]
UNORDERED = (3, 4, 5, 6)
FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "listed": {"aggregate-function": "collect"},
    "known": {"aggregate-function": "collect", "distinct": "true"},
    "entries": {"aggregate-function": "merge_map"},
    "newest": {"aggregate-function": "nested_update", "nested-key": "a", "nested-sequence-field": "s"},
    "partly": {
        "aggregate-function": "nested_partial_update",
        "nested-key": "a,b",
        "nested-key-null-strategy": "ignore",
        "ignore-retract": "true",
    },
    "some": {"aggregate-function": "nested_update", "count-limit": "4"},
}
OPTIONS = {
    "bucket": "1",
    "write-only": "true",
    **{f"fields.{name}.{option}": value for name, told in FUNCTIONS.items() for option, value in told.items()},
}
AGGREGATES = {"merge-engine": "aggregation"}
GROUPS = {"merge-engine": "partial-update", "fields.g.sequence-group": ",".join(FUNCTIONS)}
VECTORS = {"deletion-vectors.enabled": "true"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "aggregation": {**AGGREGATES, **VECTORS},
    "groups": {**GROUPS, **VECTORS},
    "aggregation without vectors": AGGREGATES,
    "groups without vectors": GROUPS,
    "by sequence": {**AGGREGATES, **VECTORS, "sequence.field": "g"},
    "orc": {**AGGREGATES, **VECTORS, "file.format": "orc"},
}


def made(java: PaimonJava, table: Path, options: Mapping[str, str]) -> Path:
    """Every key has three rows, of nulls and repeated elements as well."""
    random = Random(str(sorted(options.items())))
    java.create(table, Layout(COLUMNS, ["k"], options={**OPTIONS, **options}))
    for kinds in (["+I"], ["+U", "+U", "-U"], ["+U", "-D", "+U"]):
        java.write(table, [a_row(random, random.choice(kinds), k) for k in range(60)])
    return table


def a_row(random: Random, kind: str, k: int) -> Row:
    def some(make: Callable[[], Any], nulls: float = 0.2) -> Any:
        few = [None if random.random() < nulls else make() for _ in range(random.randrange(4))]
        return None if random.random() < 0.1 else few

    def nested() -> Any:
        return [random.choice([None, 0, 1]), random.choice([None, "", "b"]), random.choice([None, 0.0, "-0.0", 1.5])]

    entries = {random.choice("abc"): random.choice([None, 1, 2]) for _ in range(random.randrange(4))}
    return (
        kind,
        k,
        random.choice([0, 1, 2]),
        some(lambda: random.choice([0.0, "-0.0", "NaN"])),
        some(lambda: random.choice(["", "a", "b"])),
        sorted(entries.items()),
        some(nested),
        some(nested),
        some(nested),
    )


def rows(java: PaimonJava, table: Path, options: Mapping[str, str]) -> list[str]:
    found = java.read(table, Scan(options=options)).rows
    return sorted(repr([alike(v) if n in UNORDERED else v for n, v in enumerate(row)]) for row in found)


@pytest.mark.parametrize("name", some_extended(TABLES, keep=1))
def test_odd_elements_are_joined_as_java_joins_them(
    name: str, paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path
) -> None:
    table = made(paimon_java, tmp_path / "t", TABLES[name])
    before = rows(paimon_java, table, MERGE_ON_READ)
    theirs = tmp_path / "java"
    shutil.copytree(table, theirs)
    paimon_java.compact(theirs, Compaction(full=True, user="compactor"))
    document = (upgrade if "deletion-vectors.enabled" in TABLES[name] else optimize)(table, full=True)
    assert document.outcome is Outcome.VERIFIED, str(document)
    assert rows(paimon_java, table, {}) == before == rows(paimon_java, theirs, {})
    for each in (table, theirs):
        # Java's arrays have the order of its hash tables, which is none.
        request = CheckRequest(Address("paimon", str(each), each.name), version=4, base_version=3)
        found = check(request, spark=spark)
        assert found.status is CheckStatus.PASSED, str(found)


def changed(function: Function, change: Callable[[list[Any]], list[Any]]) -> Any:
    """ElementFold.values with every array or map of `function` changed."""
    values = ElementFold.values

    def wrong(fold: ElementFold, keys: np.ndarray[Any, np.dtype[np.int64]]) -> ChunkedArray:
        column = values(fold, keys)
        return remade(column, change) if fold._rule.function is function else column

    return wrong


def remade(column: ChunkedArray, change: Callable[[list[Any]], list[Any]]) -> ChunkedArray:
    return pa.chunked_array([pa.array([each and change(each) for each in column.to_pylist()], column.type)])


def without_last(entries: list[Any]) -> list[Any]:
    return sorted(entries)[:-1]


SABOTAGES: Mapping[str, tuple[Function, Callable[[list[Any]], list[Any]]]] = {
    "an element lost": (Function.COLLECT, lambda held: held[:-1]),
    "an element twice": (Function.COLLECT, lambda held: [*held, held[0]]),
    "an entry of another value": (Function.MERGE_MAP, lambda held: [(held[0][0], 99), *held[1:]]),
    "a row of another key": (Function.NESTED_PARTIAL_UPDATE, lambda held: [{**held[0], "a": 99}, *held[1:]]),
    "rows in another order": (Function.NESTED_UPDATE, lambda held: held[::-1]),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_wrong_elements_are_not_published(
    name: str, paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(paimon_java, tmp_path / "t", TABLES["aggregation"])
    monkeypatch.setattr(ElementFold, "values", changed(*SABOTAGES[name]))
    assert upgrade(table, full=True).outcome is Outcome.MISMATCH


def test_elements_without_an_order_may_be_in_any(
    paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(paimon_java, tmp_path / "t", TABLES["aggregation"])
    before = rows(paimon_java, table, MERGE_ON_READ)
    for function in (Function.NESTED_PARTIAL_UPDATE, Function.MERGE_MAP):
        monkeypatch.setattr(ElementFold, "values", changed(function, lambda held: held[::-1]))
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    assert rows(paimon_java, table, {}) == before


@pytest.mark.extended
def test_elements_that_rewrite_and_gate_lose_are_found_by_the_check(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(paimon_java, tmp_path / "t", TABLES["aggregation"])

    def fewer(parts: Any, column: Any, rule: Any) -> ChunkedArray:
        found = elements(parts, column, rule)
        return remade(found, without_last) if rule.function is Function.MERGE_MAP else found

    with monkeypatch.context() as patch:
        patch.setattr(ElementFold, "values", changed(Function.MERGE_MAP, without_last))
        patch.setitem(merged._COMPUTED, Function.MERGE_MAP, fewer)
        assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    request = CheckRequest(Address("paimon", str(table), "t"), version=4, base_version=3)
    assert check(request, spark=spark).status is CheckStatus.FAILED
