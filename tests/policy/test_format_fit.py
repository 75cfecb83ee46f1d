"""Settings that do not fit a table's format are faults of the policy, each with its line. No table is opened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from samples.working_copy import ROOT, copy_tables, variables

from nightkeep.api.call_context import find_context
from nightkeep.errors import NightkeepError
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Request
from nightkeep.policy import faults_of, load_usable
from nightkeep.policy.format_fit import HANDLED, MISSING_METRICS, metrics_of_format


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """The addresses of all sample tables, of every format."""
    copy_tables(tmp_path / "warehouse")
    for name, value in variables(tmp_path).items():
        monkeypatch.setenv(name, value)
    return [each.address for each in find_context(ROOT / "dags/tables.yaml", None).with_discovered().tables]


def faults(*lines: str) -> tuple[str, ...]:
    return faults_of(load_usable("t.yaml", text="\n".join(["version: 1", *lines])))


@pytest.mark.parametrize(
    ("table", "setting", "fault"),
    [
        ("delta:/a", "operations: [upgrade]", "operations: expected operations for a, a table of delta "),
        ("delta:/a", "operations: [upgrade, optimize]", "operations: expected operations for a, a table of delta "),
        ("paimon:/a", "operations: [persist-deletes, optimize]", "operations: expected operations for a, "),
        ("iceberg:c/n.t", "operations: [upgrade]", "operations: expected operations for a, a table of iceberg "),
        (
            "paimon:/a",
            'when: "equality_deletes > 0"',
            "when: expected metrics for a, a table of paimon, found equality",
        ),
        ("delta:/a", "when: {any: [sorted_runs > 1, manifests > 9]}", "when: expected metrics for a, a table of delta"),
        ("delta:/a", "when: {all: [files > 1, level0_rows > 9]}", "when: expected metrics for a, a table of delta"),
        ("iceberg:c/n.t", "when: {optimize: level0_rows > 9}", "when: expected metrics for a, a table of iceberg"),
        ("delta:/a", "when: {upgrade: files > 9}", "when: expected operations that are run on a, a table of delta"),
    ],
)
def test_a_setting_that_has_no_effect_is_a_fault(table: str, setting: str, fault: str) -> None:
    (found,) = faults("tables:", f"- name: a\n  table: '{table}'\n  {setting}")
    assert found.startswith(f"t.yaml:5: {fault}"), found


def test_a_layer_for_several_formats_names_operations_of_each() -> None:
    tables = ("tables:", "- {name: a, table: 'paimon:/a'}", "- {name: b, table: 'delta:/b'}")
    assert faults("defaults: {operations: [upgrade, persist-deletes, optimize]}", *tables) == ()
    assert faults("defaults: {when: {upgrade: 'level0_rows > 9', optimize: 'files > 9'}}", *tables) == ()
    (found,) = faults("patterns:", "- {match: '*', operations: [upgrade]}", *tables)
    assert found.startswith("t.yaml:3: operations: expected operations for b, a table of delta")


def test_each_format_has_these_operations(samples: list[Address]) -> None:
    for address in {each.format: each for each in samples}.values():
        table = open_table(address)
        audits = {Operation.AUDIT} if table.past is not None else set()
        assert set(HANDLED[address.format]) == set(table.operations) | audits


def test_no_table_has_a_metric_that_its_format_lacks(samples: list[Address]) -> None:
    seen: dict[str, set[str]] = {}
    for address in samples:
        table = open_table(address)
        try:
            base = table.snapshot()
        except NightkeepError:
            continue
        assert table.health is not None
        found = table.health(base, Request(Operation.OPTIMIZE, now_ms=time.time_ns() // 1_000_000)).metrics
        seen.setdefault(address.format, set()).update(name for name, value in found.items() if value is not None)
    for table_format, metrics in seen.items():
        assert metrics <= metrics_of_format(table_format)
    assert set(seen) == set(MISSING_METRICS)
    assert "level0_rows" in seen["paimon"] and "equality_deletes" in seen["iceberg"]
