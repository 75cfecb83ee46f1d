"""Places that answer, that are not there, and that never answer, asked side by side."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.discovery.warehouses import place_samples
from tests.drivers.s3_server import Bucket

from nightkeep.policy import PolicyFile, load_usable
from nightkeep.readiness.finding import Concern, Finding, Readiness
from nightkeep.readiness.places_side import answers, find_places, schemes_of


def policy(folder: Path, *lines: str) -> PolicyFile:
    return load_usable(folder / "tables.yaml", text="\n".join(["version: 1", *lines]))


def by_name(found: tuple[Finding, ...]) -> dict[str, Finding]:
    return {each.subject: each for each in found}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_warehouses_and_a_catalog_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place_samples(tmp_path, monkeypatch)
    loaded = policy(
        tmp_path,
        "discover:",
        "  - {paimon: warehouse/paimon}",
        "  - {delta: warehouse/delta/shop.db}",
        "  - {iceberg: lake}",
        "  - {delta: not_there}",
        "tables:",
        "  - {name: a, table: 'iceberg:lake/shop.orders'}",
        "  - {name: b, table: 'iceberg:unknown/shop.orders'}",
    )
    found = by_name(find_places(loaded, writes=True))
    assert {name for name, each in found.items() if each.hinders} == {"discover delta:not_there", "catalog unknown"}
    assert {each.concerns for each in found.values()} == {Concern.TABLES}
    assert "PYICEBERG_CATALOG__UNKNOWN__" in str(found["catalog unknown"]) and len(found) == 6


@pytest.mark.slow
def test_a_catalog_that_never_answers_costs_its_wait_and_no_other_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    place_samples(tmp_path, monkeypatch)
    monkeypatch.setenv("NIGHTKEEP_PATIENCE_SECONDS", "2")
    for name in ("one", "two"):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__TYPE", "rest")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__URI", silent)
    begun = time.monotonic()
    loaded = policy(tmp_path, "discover:", "  - {iceberg: one}", "  - {iceberg: lake}", "  - {iceberg: two}")
    found = by_name(find_places(loaded, writes=False))
    assert time.monotonic() - begun < 15
    assert {name: each.status for name, each in found.items()} == {
        "discover iceberg:one": Readiness.FAILED,
        "discover iceberg:lake": Readiness.PASSED,
        "discover iceberg:two": Readiness.FAILED,
    }


def test_what_takes_longer_than_its_bound_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def never() -> str | None:
        ended.wait(60)
        return None

    begun = time.monotonic()
    late, fine = answers([never, lambda: None], seconds=0.3)
    ended.set()
    assert time.monotonic() - begun < 5 and fine is None
    assert late == "no answer within 0 seconds (NIGHTKEEP_PATIENCE_SECONDS)"


@pytest.mark.slow
def test_a_bucket_of_tables_is_asked_once_and_left_as_it_was(tmp_path: Path, s3_bucket: Bucket) -> None:
    entries = [f"  - {{name: t{n}, table: 'delta:{s3_bucket.uri}/lake/t{n}'}}" for n in range(3)]
    loaded = policy(tmp_path, "tables:", *entries, "  - {name: gone, table: 'delta:s3://no-such-bucket-here/t'}")
    found = by_name(find_places(loaded, writes=True))
    assert found.keys() == {s3_bucket.uri, "s3://no-such-bucket-here"}
    assert found[s3_bucket.uri].status is Readiness.PASSED
    assert "AWS_ACCESS_KEY_ID" in found["s3://no-such-bucket-here"].found
    assert not [path for path in s3_bucket.folder.rglob("*") if path.is_file()]
    assert schemes_of(loaded) == ("s3",)
