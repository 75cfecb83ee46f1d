"""Whatever we rewrite, a second run of the same night finds nothing to do: every file format, layout, kind of table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.formats.paimon.appended import operate
from tests.support.extended import some_extended

from nightkeep.model import Operation, Outcome

FORMATS = ("parquet", "orc", "avro")
LAYOUTS: Mapping[str, Mapping[str, object]] = {
    "pack": {},
    "sort": {"clustering": {"zorder": ["k"]}},
    "zorder": {"clustering": {"zorder": ["k", "v"]}},
    "hilbert": {"clustering": {"hilbert": ["k", "v"]}},
}
APPEND = {"bucket": "-1", "target-file-size": "32 kb", "compaction.min.file-num": "2"}
KEYED: Mapping[str, Mapping[str, str]] = {
    "compaction": {"bucket": "2"},
    "aggregation": {"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "vectors": {"bucket": "2", "deletion-vectors.enabled": "true"},
}
NAMES: Mapping[str, Mapping[str, str]] = {
    "prefix": {"data-file.prefix": "sales-"},
    "codec": {"file.suffix.include.compression": "true"},
}
COLUMNS = [("k", "INT"), ("v", "INT"), ("t", "STRING")]


@pytest.mark.parametrize("layout", some_extended([*LAYOUTS], keep=2))
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_table_without_keys(paimon_java: PaimonJava, tmp_path: Path, file_format: str, layout: str) -> None:
    _settles(paimon_java, tmp_path / "t", {"file.format": file_format, **APPEND}, LAYOUTS[layout])


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("file_format", some_extended(FORMATS, keep=1))
@pytest.mark.parametrize("layout", ["pack", "hilbert"])
def test_a_table_with_names_of_its_own(
    paimon_java: PaimonJava, tmp_path: Path, file_format: str, names: str, layout: str
) -> None:
    _settles(paimon_java, tmp_path / "t", {"file.format": file_format, **APPEND, **NAMES[names]}, LAYOUTS[layout])


def _settles(java: PaimonJava, folder: Path, options: Mapping[str, str], settings: Mapping[str, object]) -> None:
    java.create(folder, Layout(COLUMNS, options=dict(options)))
    for step in range(4):
        java.write(folder, [("+I", k, k * 7 % 41, f"t{k % 5}") for k in range(step * 50, step * 50 + 50)])
    before = sorted(map(repr, java.read(folder).rows))
    first = operate(folder, Operation.OPTIMIZE, **settings)
    assert first.outcome is Outcome.VERIFIED, first.reason
    again = operate(folder, Operation.OPTIMIZE, **settings)
    assert again.outcome is Outcome.UNCHANGED, [unit.reason for unit in again.plan.units]
    assert sorted(map(repr, java.read(folder).rows)) == before


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", some_extended([*KEYED], keep=2))
@pytest.mark.parametrize("file_format", some_extended(FORMATS, keep=2))
@pytest.mark.parametrize("full", [False, True])
def test_a_table_with_keys(paimon_java: PaimonJava, tmp_path: Path, file_format: str, kind: str, full: bool) -> None:
    folder, options = tmp_path / "t", {"file.format": file_format, **KEYED[kind]}
    paimon_java.create(folder, Layout(COLUMNS, ("k",), [], options))
    for step in range(6):
        rows = [("+I", k, k % 41, f"s{step}") for k in range(step * 20, step * 20 + 60)]
        paimon_java.write(folder, rows, Writer())
    operation = Operation.UPGRADE if kind == "vectors" else Operation.OPTIMIZE
    first = operate(folder, operation, full=full)
    assert first.outcome is Outcome.VERIFIED, first.reason
    again = operate(folder, operation)
    assert again.outcome is Outcome.UNCHANGED, [unit.reason for unit in again.plan.units]
