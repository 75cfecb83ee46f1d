"""Examples of what is refused -> docs/paimon-features.md, with the message of each refusal.

`make feature-pages` writes the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.features import refuse_schema
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.model.json_values import JsonValue

TEST: Final = "tests/formats/paimon/metadata/test_features.py::test_what_the_page_lists_is_refused"
_HEAD: Final = f"""# What is refused of Paimon tables

Every operation refuses a table with one of these before it reads data. Paimon 2.0.0 has these options and types.
Everything else is handled, or has no effect on stored rows; what one operation refuses is in [formats](formats.md).
Printed by `make feature-pages`.
Each line is a case of `{TEST}`.

| a table with | why, or what to do |
|---|---|"""
_COLUMNS: Final = {"k": "INT NOT NULL", "p": "INT NOT NULL", "n": "INT", "t": "STRING", "d": "DECIMAL(20, 2)"}
_UPDATES: Final = {"merge-engine": "partial-update"}
_AGGREGATES: Final = {"merge-engine": "aggregation"}
_GROUP: Final = {**_UPDATES, "fields.n.sequence-group": "t"}
_NESTED: Final = {"type": "ARRAY", "element": "INT"}
_COLLECTS: Final = {**_AGGREGATES, "fields.a.aggregate-function": "collect"}
_BINARY_KEYS: Final[JsonValue] = {"type": "MAP", "key": "BYTES", "value": "INT"}
_ROWS: Final = {**_AGGREGATES, "fields.a.aggregate-function": "nested_update"}
_OF_ROWS: Final[JsonValue] = {
    "type": "ARRAY",
    "element": {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": "INT"}]},
}
_AGES: Final = {"record-level.expire-time": "1 d"}
_TELLS: Final = {"changelog-producer": "lookup"}


@dataclass(frozen=True, slots=True)
class Example:
    """A table that is refused: its `options`, and how else it differs from one with a key and a partition."""

    options: Mapping[str, str]
    columns: Mapping[str, JsonValue] = field(default_factory=dict)
    keys: tuple[str, ...] = ("k", "p")
    has_vectors: bool = True

    def schema(self) -> PaimonSchema:
        columns: dict[str, JsonValue] = {**_COLUMNS, **self.columns}
        fields = tuple(PaimonField(n, name, parse_type(text)) for n, (name, text) in enumerate(columns.items()))
        vectors = {"deletion-vectors.enabled": "true"} if self.has_vectors else {}
        return PaimonSchema(0, fields, ("p",), self.keys, {"bucket": "1", **vectors, **self.options})


EXAMPLES: Final = (
    Example({"merge-engine": "of-a-later-release"}),
    Example({**_AGGREGATES, "fields.n.sequence-group": "t"}),
    Example({**_UPDATES, "fields.n.sequence-group": "absent"}),
    Example({**_UPDATES, "fields.n.sequence-group": "k"}),
    Example({**_GROUP, "fields.d.sequence-group": "t"}),
    Example({**_GROUP, "partial-update.remove-record-on-sequence-group": "t"}),
    Example({**_GROUP, "partial-update.remove-record-on-sequence-group": "n", "ignore-delete": "true"}),
    Example({**_GROUP, "partial-update.remove-record-on-delete": "true"}),
    Example({**_GROUP, "fields.t.aggregate-function": "first_non_null_value"}),
    Example({**_UPDATES, "fields.n.aggregate-function": "sum"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "hll_sketch"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "theta_sketch"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "rbm32"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "rbm64"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "collect"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "merge_map"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "merge_map_with_keytime"}),
    Example({**_COLLECTS, "fields.a.distinct": "true"}, {"a": {"type": "ARRAY", "element": "BYTES"}}),
    Example({**_COLLECTS, "fields.a.distinct": "true"}, {"a": {"type": "ARRAY", "element": _NESTED}}),
    Example(_COLLECTS, {"a": {"type": "ARRAY", "element": "TIMESTAMP(9)"}}),
    Example({**_AGGREGATES, "fields.a.aggregate-function": "merge_map"}, {"a": _BINARY_KEYS}),
    Example({**_ROWS, "fields.a.nested-key": "x", "fields.a.count-limit": "9"}, {"a": _OF_ROWS}),
    Example({**_ROWS, "fields.a.nested-key": "absent"}, {"a": _OF_ROWS}),
    Example({**_ROWS, "fields.a.nested-sequence-field": "x"}, {"a": _OF_ROWS}),
    Example({**_ROWS, "fields.a.nested-key": "x", "fields.a.nested-key-null-strategy": "skip"}, {"a": _OF_ROWS}),
    Example({**_ROWS, "fields.a.count-limit": "few"}, {"a": _OF_ROWS}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "nested_update"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "nested_partial_update"}),
    Example({**_AGGREGATES, "fields.t.aggregate-function": "one-of-a-plugin"}),
    Example({**_AGGREGATES, "fields.n.aggregate-function": "bool_and"}),
    Example({**_AGGREGATES, "fields.b.aggregate-function": "max"}, {"b": "BOOLEAN"}),
    Example({**_AGGREGATES, "fields.a.aggregate-function": "min"}, {"a": _NESTED}),
    Example({**_AGGREGATES, "fields.d.aggregate-function": "sum"}),
    Example({**_AGGREGATES, "fields.n.aggregate-function": "listagg"}),
    Example(
        {
            **_AGGREGATES,
            "fields.t.aggregate-function": "listagg",
            "fields.t.distinct": "true",
            "fields.t.list-agg-delimiter": ", ",
        }
    ),
    Example({"changelog-producer": "of-a-later-release"}),
    Example({"changelog-producer": "full-compaction"}),
    Example({"changelog-producer": "full-compaction", "merge-engine": "first-row"}, has_vectors=False),
    Example({**_TELLS, "changelog-file.format": "avro"}),
    Example({**_TELLS, "changelog-file.prefix": "a/b"}),
    Example({"file.format": "lance"}),
    Example({"file.format": "orc", "file.compression": "brotli"}),
    Example({"file.format": "avro", "file.compression": "lz4"}),
    Example({"file.format.per.level": "0:orc"}, keys=()),
    Example({}, {"odd": "VARIANT"}),
    Example({}, {"odd": "BLOB"}),
    Example({"type": "format-table"}),
    Example({"branch": "other"}),
    Example({"manifest.format": "orc"}),
    Example({"manifest.compression": "xz"}),
    Example({"pk-clustering-override": "true"}),
    Example({"row-tracking.enabled": "true"}),
    Example({"data-evolution.enabled": "true"}),
    Example({"lookup.remote-file.enabled": "true"}),
    Example({**_TELLS, "sequence.snapshot-ordering": "true"}),
    Example({"query-auth.enabled": "true"}),
    Example({"chain-table.enabled": "true"}),
    Example({"compaction.force-rewrite-all-files": "true"}),
    Example(_AGES),
    Example({**_AGES, "record-level.time-field": "absent"}),
    Example({**_AGES, "record-level.time-field": "t"}),
    Example({**_AGES, "record-level.time-field": "n", "merge-engine": "first-row"}, has_vectors=False),
    Example({**_AGES, "record-level.time-field": "n", **_TELLS}),
    Example({"commit.callbacks": "com.example.Callback"}),
    Example({"data-file.external-paths": "file:/elsewhere", "data-file.external-paths.strategy": "round-robin"}),
    Example({"global-index.external-path": "file:/elsewhere"}),
    Example({"pk-vector.index.columns": "t"}),
    Example({"pk-btree.index.columns": "n"}),
    Example({"pk-bitmap.index.columns": "n"}),
    Example({"pk-full-text.index.columns": "t"}),
    Example({"metadata.iceberg.storage": "table-location"}),
    Example({"visibility-callback.enabled": "true"}),
    Example({"bucket": "-2"}),
    Example({"bucket": "-1"}, keys=("k",)),
    Example({"num-levels": "2000"}),
)
"""One for each refusal."""


def refusal(example: Example) -> RefusedTable | None:
    """The refusal of the table, None if it is handled."""
    try:
        refuse_schema("t", example.schema())
    except RefusedTable as refused:
        return refused
    return None


def document() -> str:
    """The page, in Markdown."""
    found = [refused for example in EXAMPLES if (refused := refusal(example)) is not None]
    lines = [f"| {one.feature.removesuffix(' is not handled')} | {one.advice} |" for one in found]
    return "\n".join([_HEAD, *lines]) + "\n"


if __name__ == "__main__":
    print(document(), end="")
