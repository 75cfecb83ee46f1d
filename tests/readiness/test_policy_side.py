"""Faults of a policy as rows: what costs every run, and what costs only its tables."""

from __future__ import annotations

from pathlib import Path

from nightkeep.readiness.finding import Concern, Readiness
from nightkeep.readiness.policy_side import read_policy


def write(folder: Path, *lines: str) -> Path:
    file = folder / "tables.yaml"
    file.write_text("\n".join(lines))
    return file


def test_a_policy_without_faults_is_one_row(tmp_path: Path) -> None:
    file = write(tmp_path, "version: 1", "tables:", "  - {name: a, table: 'delta:a'}", "discover:", "  - {delta: lake}")
    loaded, (found,) = read_policy(file)
    assert loaded is not None and found.status is Readiness.PASSED
    assert (found.subject, found.found) == (str(file), "1 table listed, 1 place to look for tables in")


def test_an_unset_variable_costs_only_its_table(tmp_path: Path) -> None:
    file = write(tmp_path, "version: 1", "tables:", "  - name: a", "    table: 'delta:${NK_UNSET_HERE}/a'")
    loaded, (found,) = read_policy(file)
    assert loaded is not None and (found.status, found.concerns) == (Readiness.FAILED, Concern.TABLES)
    assert found.subject == f"{file}:4: tables[0].table" and not found.stops_every_run
    assert found.expected == "environment variable NK_UNSET_HERE to be set or given a default"


def test_a_file_that_is_not_understood_costs_every_run(tmp_path: Path) -> None:
    loaded, found = read_policy(write(tmp_path, "version: 1", "retries: 3", "nights: 2"))
    assert loaded is None and len(found) == 2 and all(each.stops_every_run for each in found)
    assert [each.subject.partition(": ")[0] for each in found] == [f"{tmp_path}/tables.yaml:{n}" for n in (2, 3)]


def test_no_file_is_missing(tmp_path: Path) -> None:
    loaded, (found,) = read_policy(tmp_path / "none.yaml")
    assert loaded is None and found.status is Readiness.MISSING
    assert str(found) == f"{tmp_path}/none.yaml:1: expected a policy file, found no such file"
