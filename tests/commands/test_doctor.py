"""nightkeep doctor: rows, sentences, exit status, and nothing secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.discovery.warehouses import place_samples
from tests.support.commands import said

import nightkeep

KEYS = ["check", "status", "subject", "expected", "found", "remedy", "concerns"]


@pytest.fixture(autouse=True)
def _no_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of an Airflow that is set up nowhere; tests/plugin has the one that is."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "no-airflow"))
    monkeypatch.chdir(tmp_path)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)


def write(folder: Path, *lines: str) -> str:
    (folder / "tables.yaml").write_text("\n".join(["version: 1", *lines]))
    return str(folder / "tables.yaml")


@pytest.mark.slow
def test_nothing_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place_samples(tmp_path, monkeypatch)
    policy = write(tmp_path, "discover:", "  - {delta: warehouse/delta/shop.db}", "  - {iceberg: lake}")
    done = said(capsys, "doctor", "--policy", policy, "--json")
    assert (done.status, done.err) == (0, "")
    assert [*done.json[0]] == KEYS and done.json == nightkeep.doctor(policy=policy).to_json()
    checks = [each["check"] for each in done.json]
    assert checks == [
        "python",
        "packages",
        "policy",
        "place",
        "place",
        "reports",
        "extra spark",
        "java",
        "spark-submit",
    ]
    assert not (tmp_path / "no-airflow").exists()
    text = said(capsys, "doctor", "--policy", policy)
    assert text.status == 0 and text.out.splitlines()[-1] == "9 checks, nothing is missing"


@pytest.mark.slow
def test_what_is_missing_is_a_sentence_each_and_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    monkeypatch.setenv("PYICEBERG_CATALOG__SHUT__URI", "http://reader:hunter2hunter2@127.0.0.1:9/api")
    (tmp_path / "reports").write_text("a file")
    policy = write(tmp_path, "discover:", "  - {iceberg: shut}", "tables:", "  - {name: a, table: 'delta:${NK_NONE}'}")
    done = said(capsys, "doctor", "--policy", policy)
    assert done.status == 1
    sentences = [line for line in done.out.splitlines() if ": expected " in line]
    assert [line.partition(": expected ")[0] for line in sentences] == [
        f"{policy}:5: tables[0].table",
        "discover iceberg:shut",
        str(tmp_path / "reports"),
        "Spark",
    ]
    assert "NK_NONE" in done.out and "hunter2" not in done.out + done.err
    assert done.out.splitlines()[-1].endswith("4 of them found what a run lacks")
    rows = said(capsys, "doctor", "--policy", policy, "--json")
    assert rows.status == 1 and "hunter2" not in rows.out
    assert {row["check"] for row in rows.json if row["status"] == "failed"} == {"policy", "place", "reports", "java"}


@pytest.mark.slow
def test_without_a_policy_tables_are_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = said(capsys, "doctor", "--json")
    (policy,) = (row for row in done.json if row["check"] == "policy")
    assert (done.status, policy["status"]) == (0, "not_applicable")


@pytest.mark.slow
def test_a_policy_that_is_named_and_not_there_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = said(capsys, "doctor", "--policy", "none.yaml", "--json")
    (policy,) = (row for row in done.json if row["check"] == "policy")
    assert (done.status, policy["status"], policy["found"]) == (1, "missing", "no such file")
    assert json.loads(done.out) == done.json
