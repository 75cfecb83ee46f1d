"""Arrays and maps that the gate merges, and the form in which it compares them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from nightkeep.formats.paimon.gate.merged_elements import elements
from nightkeep.formats.paimon.gate.unordered import alike
from nightkeep.formats.paimon.metadata.element_rules import ElementRule
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.kernels.fingerprint import fingerprint


def parts(rows: list[tuple[int, str]], values: list[Any]) -> pl.DataFrame:
    """`rows`: key and the marks of a row: b(ase), n(ewer), o(lder), r(etract)."""
    return pl.DataFrame(
        {
            "key": [key for key, _ in rows],
            "at": list(range(len(rows))),
            **{name: [name[0] in marks for _, marks in rows] for name in ("base", "newer", "older")},
            "there": [value is not None for value in values],
            "back": ["r" in marks for _, marks in rows],
        }
    )


def test_elements_are_joined_and_taken_back_from_a_base() -> None:
    rows = [(1, "bnr"), (1, "n"), (1, "o"), (2, "n"), (2, "nr"), (3, "nr"), (4, "")]
    values = [[1, 1], [2], [3, None], [5, 5, 6], [5], [7], [8]]
    column = pa.chunked_array([pa.array(values, pa.list_(pa.int32()))])
    # The base is taken back, one element for each; older elements are last, as retracts are not ignored.
    found = elements(parts(rows, values), column, FieldRule(Function.COLLECT, elements=ElementRule()))
    assert found.to_pylist() == [[2, 3, None], [5, 6], None, None]


def test_an_older_map_gives_way() -> None:
    rows = [(1, "n"), (1, "o"), (2, "n"), (2, "nr")]
    values = [[("a", 1)], [("a", 2), ("b", 3)], [("a", 1), ("b", 2)], [("a", None)]]
    column = pa.chunked_array([pa.array(values, pa.map_(pa.string(), pa.int32()))])
    found = elements(parts(rows, values), column, FieldRule(Function.MERGE_MAP, elements=ElementRule()))
    assert [dict(entries or []) for entries in found.to_pylist()] == [{"a": 1, "b": 3}, {"b": 2}]


def test_elements_are_compared_without_an_order_only_where_they_have_none() -> None:
    kind = {"type": "ARRAY", "element": "INT"}
    fields = (PaimonField(0, "k", parse_type("INT NOT NULL")), PaimonField(1, "a", parse_type(kind)))
    options = {"merge-engine": "aggregation", "fields.a.aggregate-function": "collect"}
    held = [[3, 1, None], [], None, [2, 2]]
    batch = pa.record_batch({"k": [1, 2, 3, 4], "a": pa.array(held, pa.list_(pa.int32()))})
    other = pa.record_batch({"k": [1, 2, 3, 4], "a": pa.array([[None, 3, 1], *held[1:]], pa.list_(pa.int32()))})
    ordered, unordered = (
        PaimonSchema(0, fields, (), ("k",), {**options, **more}) for more in ({}, {"fields.a.distinct": "true"})
    )
    assert alike(batch, ordered).equals(batch)
    assert fingerprint(alike(batch, unordered)) == fingerprint(alike(other, unordered))
    shown = alike(batch.slice(1), unordered).column("a").to_pylist()
    assert shown == held[1:]
    fewer = pa.record_batch({"k": [1, 2, 3, 4], "a": pa.array([[3, 1], *held[1:]], pa.list_(pa.int32()))})
    assert fingerprint(alike(fewer, unordered)) != fingerprint(alike(batch, unordered))
