"""Types that were changed to others of the same kind: Java converts old values on reading, or they are kept."""

from pathlib import Path

import pytest
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.formats.paimon.upgrade import optimize
from tests.support.extended import some_extended

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.model import Outcome

CONVERTED = (
    ("BIGINT", "INT", [str(2**32 + 5), "1", None]),
    ("STRING", "INT", ["12", "-3", None]),
    ("VARCHAR(10)", "VARCHAR(3)", ["abcdef", "ab", None]),
    ("CHAR(3)", "CHAR(5)", ["abc", "ab", None]),
    ("STRING", "VARCHAR(3)", ["abcdef", "ab", None]),
    ("CHAR(5)", "CHAR(3)", ["abcde", "ab", None]),
    ("CHAR(5)", "VARCHAR(3)", ["abcde", "ab", None]),
    ("DECIMAL(10, 4)", "DECIMAL(10, 2)", ["1.2350", "1.2249", None]),
    ("DECIMAL(10, 2)", "DECIMAL(4, 2)", ["12345.67", "1.20", None]),
    ("TIMESTAMP(6)", "TIMESTAMP(3)", ["2024-01-01T00:00:00.123456", None]),
)
KEPT = (
    ("VARCHAR(3)", "VARCHAR(10)", ["abc", "ab", None]),
    ("VARCHAR(3)", "STRING", ["abc", "ab", None]),
    ("DECIMAL(10, 2)", "DECIMAL(12, 4)", ["1.25", None]),
    ("TIMESTAMP(3)", "TIMESTAMP(6)", ["2024-01-01T00:00:00.123", None]),
)


def made(java: PaimonJava, table: Path, old: str, new: str, values: list[str | None], file_format: str) -> list[str]:
    options = {"bucket": "-1", "file.format": file_format, "write-only": "true"}
    java.create(table, Layout([("k", "INT"), ("v", old)], options=options))
    for first in (0, 10):
        java.write(table, [("+I", first + k, v) for k, v in enumerate(values)], Writer(user="w"))
    java.alter(table, {"change": "change_type", "name": "v", "type": new})
    return shown(java, table)


def shown(java: PaimonJava, table: Path) -> list[str]:
    return sorted(repr(list(row)) for row in java.read(table).rows)


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize(("old", "new", "values"), some_extended(CONVERTED, keep=2))
def test_values_that_java_converts_are_read_and_not_rewritten(
    paimon_java: PaimonJava, tmp_path: Path, old: str, new: str, values: list[str | None], file_format: str
) -> None:
    table = tmp_path / "t"
    before = made(paimon_java, table, old, new, values, file_format)
    named = f"column v was written as {old} and is now {new}"
    if new.startswith("TIMESTAMP"):
        with pytest.raises(RefusedTable) as refused:
            nightkeep.read(f"paimon:{table}").read_all()
        assert named in str(refused.value)
    else:
        found = nightkeep.read(f"paimon:{table}").read_all()
        assert sorted(map(repr, rows_from_arrow(found, ["INT", new]))) == before
    told = optimize(table, full=True)
    assert (told.outcome, told.committed_version) == (Outcome.REFUSED, None) and named in str(told.reason)
    assert shown(paimon_java, table) == before


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize(("old", "new", "values"), some_extended(KEPT, keep=1))
def test_values_that_java_keeps_are_packed(
    paimon_java: PaimonJava, tmp_path: Path, old: str, new: str, values: list[str | None], file_format: str
) -> None:
    table = tmp_path / "t"
    before = made(paimon_java, table, old, new, values, file_format)
    found = nightkeep.read(f"paimon:{table}").read_all()
    assert sorted(map(repr, rows_from_arrow(found, ["INT", new]))) == before
    told = optimize(table, full=True)
    assert told.outcome is Outcome.VERIFIED, told.reason
    assert shown(paimon_java, table) == before
