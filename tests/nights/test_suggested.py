"""The names that the form suggests: of the policy, and of what the last night found."""

import os
from pathlib import Path

import pytest

from nightkeep.discovery import Found, keep_found, last_found
from nightkeep.discovery.found import FoundTable
from nightkeep.nights.run_tables import suggested
from nightkeep.records import found_path, night_path

POLICY = "version: 1\ntables: [{name: listed, table: delta:/lake/listed}]\ndiscover: [{delta: /lake}]\n"


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "tables.yaml").write_text(POLICY)
    return str(tmp_path / "tables.yaml"), str(tmp_path / "reports")


def found(*names: str) -> Found:
    return Found(tuple(FoundTable(name, "delta", f"/lake/{name}", "lake") for name in names))


def kept(reports: str, prefix: str, at: int, *names: str) -> None:
    os.utime(keep_found(reports, prefix, found(*names)), (at, at))


def test_the_policy_alone_before_any_night(place: tuple[str, str]) -> None:
    assert suggested(*place) == ["listed"]


def test_what_the_last_night_found_and_no_other_run(place: tuple[str, str]) -> None:
    now = 2_000_000_000
    kept(place[1], "nightly-1", now, "gone", "b")
    kept(place[1], "nightly-2", now + 1, "listed", "b", "a")
    kept(place[1], "on_demand-3", now + 2, "c")
    Path(night_path(place[1], "nightly-2")).write_text("[]")
    os.utime(night_path(place[1], "nightly-2"), (now + 3, now + 3))
    assert suggested(*place) == ["listed", "a", "b"]


def test_a_damaged_file_and_a_bucket_suggest_nothing(place: tuple[str, str]) -> None:
    kept(place[1], "nightly-1", 2_000_000_000, "a")
    Path(found_path(place[1], "nightly-1")).write_text('{"tables": 1}')
    assert suggested(*place) == ["listed"]
    assert last_found("s3://bucket/reports", "nightly-") == Found()


def test_a_policy_in_a_store_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DAG processor may have no credentials, and the store may be away."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert suggested("s3://bucket/tables.yaml", "s3://bucket/reports") == []
