"""Options that have no effect on a table, and row tracking: Paimon Java writes, we care and read, Java reads on."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.formats.paimon.upgrade import upgrade

import nightkeep
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("note", "STRING")]
KEYED = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
UNUSED: tuple[Mapping[str, str], ...] = (
    {"data-file.external-paths": "file:/elsewhere"},
    {"data-file.external-paths": "file:/elsewhere", "data-file.external-paths.strategy": "none"},
    {"metadata.iceberg.format-version": "2"},
    {"visibility-callback.enabled": "false"},
    {"commit.callbacks": ""},
    {"pk-vector.index.columns": ""},
)


@pytest.mark.parametrize("options", UNUSED, ids=lambda options: ",".join(options))
def test_an_option_without_effect(paimon_java: PaimonJava, tmp_path: Path, options: Mapping[str, str]) -> None:
    table = tmp_path / "t"
    try:
        paimon_java.create(table, Layout(COLUMNS, ["k"], options={**KEYED, **options}))
        paimon_java.write(table, [("+I", k, f"{k}") for k in range(50)], Writer(user="writer"))
        paimon_java.write(table, [("+U", k, "later") for k in range(20)], Writer(user="writer"))
    except EngineError as failure:
        pytest.skip(f"Paimon makes no such table: {str(failure)[:200]}")
    assert not any(file.external_path for file in paimon_java.files(table))
    told = upgrade(table)
    assert told.outcome is Outcome.VERIFIED, told.reason
    rows = paimon_java.read(table).rows
    assert len(rows) == 50
    assert nightkeep.read(f"paimon:{table}").read_all().num_rows == 50


def test_rows_of_tables_with_row_tracking_are_read(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    paimon_java.create(table, Layout(COLUMNS, options={"bucket": "-1", "row-tracking.enabled": "true"}))
    for start in (0, 50):
        rows = [("+I", k, f"{k}") for k in range(start, start + 50)]
        paimon_java.write(table, rows, Writer(user="writer"))
    found = nightkeep.read(f"paimon:{table}").read_all()
    ours = sorted(map(repr, rows_from_arrow(found, [kind for _, kind in COLUMNS])))
    theirs = sorted(repr(list(row)) for row in paimon_java.read(table).rows)
    assert ours == theirs and len(ours) == 100
    assert nightkeep.read(f"paimon:{table}", where="k < 7").read_all().num_rows == 7
