"""A small table of each merge engine that streaming readers follow, and rounds of rows for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.formats.paimon.changelogs import Change

COLUMNS = [("k", "INT NOT NULL"), ("n", "BIGINT"), ("note", "STRING")]
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "by sequence": {"sequence.field": "n"},
    "silent": {
        "changelog-producer.row-deduplicate": "true", "changelog-producer.row-deduplicate-ignore-fields": "note",
    },
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    },
}  # fmt: skip
Rows = dict[tuple[Any, ...], Change]


def created(engine: PaimonJava, table: Path, options: Mapping[str, str]) -> Path:
    """The table with its first round of rows."""
    engine.create(table, Layout(COLUMNS, ["k"], options=options))
    write(engine, table, 0)
    return table


def write(engine: PaimonJava, table: Path, number: int) -> int:
    """Each round meets rows of earlier ones again, deletes some of them, and leaves some as they are."""
    keys = range(10 * number, 10 * number + 40)
    rows = [("-D" if number and k % 7 == number else "+I", k, number if k % 2 else 3, f"{number % 2}") for k in keys]
    return engine.write(table, rows, Writer(user="writer"))


def read(engine: PaimonJava, table: Path) -> Rows:
    """Rows by their key."""
    return {(row[0],): tuple(row) for row in engine.read(table).rows}
