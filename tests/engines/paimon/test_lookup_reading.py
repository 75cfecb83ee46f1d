"""Tables whose compactions look up and mark nothing: above level 0 the row of a key's lowest level is all of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.support.extended import some_extended

import nightkeep

COLUMNS = [("k", "INT NOT NULL"), ("n", "BIGINT"), ("note", "STRING")]
ENGINES: Mapping[str, Mapping[str, str]] = {
    "sum": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "removing sum": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    },
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "deduplicate": {},
    "by sequence": {"sequence.field": "n"},
}


def shown(table: Path) -> list[tuple[Any, ...]]:
    rows = nightkeep.read(f"paimon:{table}").read_all().to_pydict()
    return sorted(zip(*rows.values(), strict=True))


@pytest.mark.few(1)
@pytest.mark.parametrize("lookup", [{"changelog-producer": "lookup"}, {"force-lookup": "true"}], ids=str)
@pytest.mark.parametrize("name", some_extended(ENGINES, keep=2))
def test_a_merged_row_is_not_merged_with_what_it_was_made_of(
    name: str, lookup: Mapping[str, str], paimon_java: PaimonJava, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    options = {"bucket": "1", "write-only": "true", "compaction.max-size-amplification-percent": "100000"}
    paimon_java.create(table, Layout(COLUMNS, ["k"], options={**options, **ENGINES[name], **lookup}))
    for number in range(5):
        # A large lowest level, which no compaction of a few rows takes.
        keys = range(number, 20 if number else 5_000)
        rows = [("-D" if number and k % 5 == number else "+I", k, number, f"{number}") for k in keys]
        paimon_java.write(table, rows, Writer(user="writer"))
        assert shown(table) == sorted(paimon_java.read(table).rows), number
        paimon_java.compact(table, Compaction(full=number == 0, user="compactor"))
        assert shown(table) == sorted(paimon_java.read(table).rows), number
    assert len({file.level for file in paimon_java.files(table)}) > 1
