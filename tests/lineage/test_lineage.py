"""Published versions as OpenLineage events: what they hold, and what a receiver on loopback gets of them."""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openlineage.client.naming import dataset as naming
from openlineage.client.serde import Serde
from tests.support.http_receiver import http_receiver

from nightkeep.lineage.dataset_names import dataset_name
from nightkeep.lineage.emitting import emit_published, is_configured
from nightkeep.lineage.run_events import PROOF, run_events
from nightkeep.model import Operation, Outcome, VerifyLevel
from nightkeep.records import CheckStatus, Expectations, Metrics, RunDocument, UnitResult, Verification

NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)
SCHEMA = json.loads((files("nightkeep.lineage") / "NightkeepProofRunFacet.json").read_text())
DOCUMENT = RunDocument(
    run_id="nightly-1:shop.orders",
    table="shop.orders",
    format="delta",
    operation=Operation.OPTIMIZE,
    outcome=Outcome.VERIFIED,
    base_version=6,
    parent_version=6,
    committed_version=7,
    units=(UnitResult(partition="", bucket=None, outcome=Outcome.VERIFIED, rows=70, base_fingerprint="a", equal=True),),
    verification=Verification(VerifyLevel.FULL),
    metrics=Metrics(files_after=2, bytes_after=500, rows=70),
    expectations=Expectations(CheckStatus.PASSED, coverage="2 of 2 units"),
    address="delta:s3://lake/shop.db/orders",
    started_at=NOW,
    finished_at=NOW + timedelta(seconds=9),
)


def events(document: RunDocument) -> list[dict[str, Any]]:
    return [json.loads(Serde.to_json(event)) for event in run_events(document, "lake")]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("delta:s3://lake/shop.db/orders", naming.S3("lake", "shop.db/orders")),
        ("paimon:gs://lake/shop.db/orders", naming.GCS("lake", "shop.db/orders")),
        ("delta:abfss://box@account.dfs.core.windows.net/a/b", naming.ABFSS("box", "account", "a/b")),
        ("paimon:hdfs://name:8020/lake/shop.db/orders", naming.HDFS("name", "8020", "/lake/shop.db/orders")),
        ("delta:/lake/my orders", naming.LocalFileSystem("/lake/my orders")),
        ("delta:file:///lake/my%20orders", naming.LocalFileSystem("/lake/my orders")),
    ],
)
def test_datasets_are_named_as_the_spec_names_storages(address: str, expected: naming.DatasetNaming) -> None:
    assert dataset_name(address) == (expected.get_namespace(), expected.get_name())


def test_a_table_that_a_catalog_names_is_the_catalogs() -> None:
    assert dataset_name("iceberg:lake/shop.orders$branch_x") == ("iceberg://lake", "shop.orders$branch_x")


def test_a_published_version_is_a_start_and_an_end_of_one_run() -> None:
    start, end = events(DOCUMENT)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert (start["eventTime"], end["eventTime"]) == ("2026-11-27T02:00:00+00:00", "2026-11-27T02:00:09+00:00")
    assert start["run"]["runId"] == end["run"]["runId"] == events(DOCUMENT)[0]["run"]["runId"]
    other = events(replace(DOCUMENT, operation=Operation.UPGRADE))
    assert other[0]["run"]["runId"] != start["run"]["runId"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("lake", "shop.orders.optimize")
    assert start["outputs"] == [] and PROOF not in start["run"]["facets"]
    (read,), (written,) = end["inputs"], end["outputs"]
    same = {"namespace": "s3://lake", "name": "shop.db/orders"}
    assert all({key: each[key] for key in same} == same for each in (read, written))
    assert read["facets"]["version"]["datasetVersion"] == "6"
    assert written["facets"]["version"]["datasetVersion"] == "7"
    statistics = written["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"], statistics["fileCount"]) == (70, 500, 2)


@pytest.mark.parametrize("outcome", Outcome)
def test_the_facet_of_every_outcome_is_of_its_schema(outcome: Outcome) -> None:
    _, end = events(replace(DOCUMENT, outcome=outcome, reason="rows differ"))
    facet = end["run"]["facets"][PROOF]
    Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER).validate({PROOF: facet})
    assert facet["_schemaURL"].startswith(f"{SCHEMA['$id']}#/$defs/")
    assert (facet["outcome"], facet["rowsProven"], facet["check"]) == (outcome.value, 70, "passed")
    failed = outcome is not Outcome.VERIFIED
    assert end["eventType"] == ("FAIL" if failed else "COMPLETE")
    assert ("errorMessage" in end["run"]["facets"]) is failed
    # The schema is one that a wrong facet breaks.
    assert not Draft202012Validator(SCHEMA).is_valid({PROOF: {**facet, "outcome": "fine"}})


def test_what_published_nothing_is_no_event() -> None:
    assert events(replace(DOCUMENT, committed_version=None)) == []


def test_no_secret_is_in_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abcdef-very-secret")
    told = replace(
        DOCUMENT,
        outcome=Outcome.MISMATCH,
        reason="at s3://k:abcdef-very-secret@b",
        go_back="abcdef-very-secret",
        address="delta:s3://k:abcdef-very-secret@lake/x",
    )
    assert "abcdef" not in json.dumps(events(told))


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


def test_events_go_where_the_environment_points(clean: pytest.MonkeyPatch) -> None:
    assert not is_configured({}) and not is_configured({"OPENLINEAGE_URL": "http://h", "OPENLINEAGE_DISABLED": "true"})
    with http_receiver() as receiver:
        clean.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{receiver.port}")
        clean.setenv("OPENLINEAGE_NAMESPACE", "lake")
        assert is_configured()
        emit_published([DOCUMENT, replace(DOCUMENT, committed_version=None), replace(DOCUMENT, table="t")])
    assert [path for path, _, _ in receiver.requests] == ["/api/v1/lineage"] * 4
    got = [json.loads(body) for _, _, body in receiver.requests]
    assert [each["eventType"] for each in got] == ["START", "COMPLETE"] * 2
    # The client adds tags of its own.
    made = events(DOCUMENT)
    for key in ("eventTime", "producer", "inputs", "outputs"):
        assert [each[key] for each in got[:2]] == [each[key] for each in made]
    assert got[1]["run"]["facets"][PROOF] == made[1]["run"]["facets"][PROOF]


@pytest.mark.parametrize("status", [500, None])
def test_a_receiver_that_breaks_or_hangs_is_a_line_in_the_log(
    clean: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int | None
) -> None:
    with http_receiver(status) as receiver:
        clean.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{receiver.port}")
        began = time.monotonic()
        emit_published([DOCUMENT], seconds=3)
        assert time.monotonic() - began < 5
    warnings = [each.getMessage() for each in caplog.records if each.name.startswith("nightkeep")]
    assert len(warnings) == 1 and warnings[0].startswith("OpenLineage: "), warnings


def test_without_the_extra_it_is_named(clean: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    clean.setitem(sys.modules, "openlineage.client", None)
    with caplog.at_level(logging.WARNING):
        emit_published([DOCUMENT])
    assert 'pip install "nightkeep[openlineage]"' in " ".join(caplog.messages)
