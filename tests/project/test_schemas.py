"""The JSON schemas in the wheel: current, and true of what releases stored and of what commands print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from docs_tools.document_schemas import FOLDER, SHAPES, text
from jsonschema import Draft202012Validator
from tests.discovery.warehouses import DISCOVER, place_samples, policy
from tests.support.commands import said
from tests.upgrade.stored_state import expected, releases, unpacked

from nightkeep.clustering.advise import Advice, Option, QueryCost
from nightkeep.model import Clustering, Curve, Operation, UnitKey
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.records.check_report import (
    CheckReport,
    ComparedVersions,
    Difference,
    DiffReport,
    ExpectationResult,
    UnitDiff,
    UnitDifference,
)
from nightkeep.records.codec import encode
from nightkeep.records.releases import Released

REMOVALS = {Operation.SWEEP, Operation.EXPIRE, Operation.RESTORE}


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii")))


def faults(name: str, value: object) -> list[str]:
    """What is wrong with a value as JSON holds it."""
    stored = json.loads(json.dumps(value))
    return [f"{each.json_path}: {each.message:.200}" for each in validator(name).iter_errors(stored)]


@pytest.mark.parametrize("name", SHAPES)
def test_the_schemas_in_the_wheel_are_current(name: str) -> None:
    Draft202012Validator.check_schema(json.loads(text(name)))
    assert (FOLDER / f"{name}.json").read_text(encoding="ascii") == text(name), "run `make schemas`"


def test_no_other_schema_is_in_the_wheel() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == SHAPES.keys()


@pytest.fixture(scope="module", params=releases())
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release left behind."""
    return unpacked(request.param, tmp_path_factory.mktemp("release") / "state")


def documents(folder: Path) -> Iterator[Any]:
    for path in sorted((folder / "reports").glob("*/*.json")):
        value = json.loads(path.read_text())
        if isinstance(value, dict) and "outcome" in value:
            yield value


def lines(paths: Iterator[Path]) -> Iterator[Any]:
    for path in paths:
        yield from map(json.loads, path.read_text().splitlines())


def test_documents_of_each_release_fit(stored: Path) -> None:
    found = [*documents(stored)]
    assert len(found) > 20 and {each["operation"] for each in found} > REMOVALS
    for each in found:
        kind = "removal-document" if each["operation"] in REMOVALS else "run-document"
        assert faults(kind, each) == [], each["run_id"]
        assert faults("run-document", each) == [], each["run_id"]


def test_removals_of_each_release_have_no_key_that_the_schema_does_not_name(stored: Path) -> None:
    """A key that is new to a removal is a key of RemovalFacts."""
    known = {*validator("removal-document").schema["properties"], "asked", "night"}
    removals = [each for each in documents(stored) if each["operation"] in REMOVALS]
    assert removals and not {key for each in removals for key in each} - known


def test_holds_ledgers_and_orphans_of_each_release_fit(stored: Path) -> None:
    reports = stored / "reports"
    holds = [json.loads(path.read_text()) for path in (reports / "holds").glob("*.json") if "~" not in path.stem]
    ledger, orphans = [*lines(reports.rglob("~ledger/*/*.jsonl"))], [*lines(reports.glob("*/*.orphans.jsonl"))]
    assert holds and ledger and orphans
    assert [each for name, values in (("hold", holds), ("ledger-entry", ledger), ("orphan", orphans))
            for value in values for each in faults(name, value)] == []  # fmt: skip


def test_what_each_release_showed_fits(stored: Path) -> None:
    shown = expected(stored)
    assert faults("history", shown["history"]) == [] and faults("tables", shown["tables"]) == []
    assert [each for value in shown["explain"].values() for each in faults("explain", value)] == []


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What commands that start no Spark print of the samples, by the names of their schemas."""
    place_samples(tmp_path, monkeypatch)
    listed = "tables:\n  - {name: gone, table: 'delta:${NK_UNSET}/gone'}\n"
    policy(tmp_path, f"{DISCOVER}{listed}")
    monkeypatch.setenv("NIGHTKEEP_POLICY", str(tmp_path / "tables.yaml"))
    monkeypatch.setenv("NIGHTKEEP_REPORTS", str(tmp_path / "reports"))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "no-airflow"))
    table = f"delta:{tmp_path}/warehouse/delta/shop.db/clicks"
    asked = {
        "runs": ("plan", table),
        "tables": ("tables",),
        "status": ("status",),
        "doctor": ("doctor",),
        "validate": ("validate",),
        "explain": ("explain", table),
        "removal-document": ("sweep", table),
        "advise": ("advise", table),
        "release": ("release", table),
        "report": ("report",),
        "history": ("history",),
    }
    return {name: said(capsys, *command, "--json").json for name, command in asked.items()}


@pytest.mark.slow
def test_what_commands_print_fits(answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        assert answer and faults(name, answer) == [], name
    assert answers["history"] and len(answers["tables"]) > 5 and answers["validate"]["faults"]
    assert faults("runs", [answers["runs"]] * 2) == []


@pytest.mark.slow
def test_what_commands_print_has_no_key_that_its_schema_does_not_name(answers: dict[str, Any]) -> None:
    for name in ("tables", "status", "doctor", "validate", "explain", "release", "report"):
        schema = validator(name).schema
        rows = answers[name] if isinstance(answers[name], list) else [answers[name]]
        row = schema["$defs"][schema["items"]["$ref"].rpartition("/")[2]] if "items" in schema else schema
        assert rows and not {key for each in rows for key in each} - row["properties"].keys(), name


DIFFERENCE = Difference(1, 0, missing_rows=({"id": 1, "at": "2026-11-01T00:00:00"},), columns=("a",), note="why")
CHECKED = CheckReport(
    CheckStatus.FAILED,
    "all",
    results=(ExpectationResult("rows are equal", None, CheckStatus.FAILED, "1 row"),),
    differences=(UnitDifference(UnitKey("dt=1", 0), "published and base", DIFFERENCE),),
    compared=ComparedVersions(2, 1, changes_rows=False, bytes=10),
    validations=({"success": False},),
)
DIFFED = DiffReport(2, 1, False, (UnitDiff(UnitKey("", None), False, None, 3, DIFFERENCE),), ("a note",), 0.5)
COST = QueryCost("day = 1", 1.0, 0.5)
ADVISED = Advice(
    "t", 3, Clustering(("a",), Curve.HILBERT), "why", 1.0, 0.5, 9, 4, (), (Option(("a",), Curve.HILBERT, 0.5, (COST,)),)
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check", CHECKED.to_json()),
        ("check", CheckReport(CheckStatus.SKIPPED, "nothing", reason="its base is gone").to_json()),
        ("diff", DIFFED.to_json()),
        ("advise", ADVISED.to_json()),
    ],
)
def test_what_commands_print_of_values_fits(name: str, value: object) -> None:
    assert faults(name, value) == []


def test_a_release_fits() -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    released = encode(Released(table="t", runs=("r",), user="u", at=at))
    assert faults("releases", [released]) == []
    assert faults("releases", [{**released, "user": None}])


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key of a value, at any depth."""
    entries = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, each in entries:
        if isinstance(value, dict):
            yield (*at, key)
        yield from places(each, (*at, key))


def test_a_document_without_a_key_or_with_another_type_does_not_fit(stored: Path) -> None:
    """Every key of the run, its commits and its units; what an operation measures is open."""
    document = next(each for each in documents(stored) if each["commits"] and each["expectations"]["results"])
    assert faults("run-document", document) == []
    open_places = ("metrics", "plan", "expectations", "versions", "night", "asked")
    checked = [at for at in places(document) if at[0] not in open_places or len(at) == 1]
    assert len(checked) > 30
    for at in checked:
        for change in ("removed", "changed"):
            broken = deepcopy(document)
            holder = broken
            for key in at[:-1]:
                holder = holder[key]
            if change == "removed":
                del holder[at[-1]]
            else:
                holder[at[-1]] = {"no": ["such", "thing"]}
            if at[0] in RunDocument.__dataclass_fields__:
                assert faults("run-document", broken), (at, change)


@pytest.mark.parametrize("key", ["outcome", "operation"])
def test_a_value_that_is_no_outcome_does_not_fit(stored: Path, key: str) -> None:
    document = next(documents(stored))
    assert faults("run-document", {**document, key: "splendid"})


def test_a_document_of_a_later_release_with_more_keys_fits(stored: Path) -> None:
    document = next(each for each in documents(stored) if each["commits"])
    later = {**document, "new": 1, "commits": [{**each, "new": {}} for each in document["commits"]]}
    assert faults("run-document", later) == []
