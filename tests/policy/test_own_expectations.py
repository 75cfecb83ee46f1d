"""Expectations of a policy: Great Expectations' types and arguments, or a suite, refused by name and line."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from tests.policy.schema import policy_schema

from nightkeep.errors import PolicyError
from nightkeep.model.check_values import Evidence
from nightkeep.model.own_expectations import ExpectedOn, OwnExpectation, Severity
from nightkeep.policy import explain_text, load, load_usable
from nightkeep.policy.expectation_arguments import types, wrong_arguments

ROOT = Path(__file__).parents[2]
NOT_NULL = "expect_column_values_to_not_be_null"


def policy(expectations: str, more: str = "") -> str:
    return f"version: 1\n{more}tables:\n  - name: a\n    table: delta:/a\n    expectations: {expectations}\n"


def asked_of(text: str) -> tuple[OwnExpectation, ...]:
    found = load("/etc/tables.yaml", text=text).effective("a").own_request(())
    assert found is not None
    return found.expectations


def test_an_expectation_knows_its_lines() -> None:
    text = policy(
        "\n      - type: expect_column_values_to_not_be_null\n        kwargs: {column: id, mostly: 0.07}\n"
        "        severity: warning\n      - {type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}}"
    )
    one, two = asked_of(text)
    assert (one.type, one.kwargs, one.severity) == (NOT_NULL, {"column": "id", "mostly": 0.07}, Severity.WARNING)
    assert one.places["column"] == "/etc/tables.yaml:7: tables[0].expectations[0].kwargs.column"
    assert one.columns == {"column": ("id",)} and str(one) == f"warning {NOT_NULL}(column='id', mostly=0.07)"
    assert (two.severity, two.columns, two.places[""]) == (
        Severity.CRITICAL,
        {},
        "/etc/tables.yaml:9: tables[0].expectations[1]",
    )


def test_layers_replace_each_other_as_a_whole() -> None:
    one = f"[{{type: {NOT_NULL}, kwargs: {{column: id}}}}]"
    text = policy("[]", f"defaults:\n  expectations: {one}\n  check: {{expectations_on: changed, evidence: rows}}\n")
    loaded = load("/etc/tables.yaml", text=text)
    assert loaded.effective("a").own_request(()) is None
    other = loaded.effective("delta:/b").own_request(((3, 2),))
    assert other is not None and [each.type for each in other.expectations] == [NOT_NULL]
    assert (other.on, other.evidence, other.commits) == (ExpectedOn.CHANGED, Evidence.ROWS, ((3, 2),))
    assert pickle.loads(pickle.dumps(loaded.effective("delta:/b"))) == loaded.effective("delta:/b")
    assert "1 expectations" in explain_text(loaded.effective("delta:/b"))


@pytest.mark.parametrize(
    ("expectations", "fault"),
    [
        ("3", ": expected a list of expectations, or the path to a suite in JSON, found 3"),
        ("[3]", "[0]: expected an expectation with type, kwargs and severity, found 3"),
        ("[{kwargs: {}}]", "with type, kwargs and severity, found a mapping without a type"),
        ("[{type: [a]}]", "[0].type: expected a type of Great Expectations, found a list"),
        (f"[{{type: {NOT_NULL[:-1]}}}]", f"found '{NOT_NULL[:-1]}'; did you mean {NOT_NULL}?"),
        ("[{type: expect_table_row_count_to_equal_other_table}]", "that Great Expectations can ask on Spark"),
        (f"[{{type: {NOT_NULL}}}]", f"[0].kwargs: expected {NOT_NULL} with column, found only no argument"),
        (f"[{{type: {NOT_NULL}, kwargs: 1}}]", "[0].kwargs: expected a mapping of arguments, found 1"),
        (f"[{{type: {NOT_NULL}, kwargs: {{colum: id}}}}]", "[0].kwargs.colum: expected an argument of"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: 1}}}}]", "(1 is not of type 'string'), found 1"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: id, mostly: 2}}}}]", "[0].kwargs.mostly: expected an argument as"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: id, mostly: 0.123}}}}]", "0.123 is not a multiple of 0.01"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: id, mostly: {{$PARAMETER: m}}}}}}]", "found $PARAMETER 'm'"),
        ("[{type: expect_column_max_to_be_between, kwargs: {column: id, max_value: a}}]", "kwargs.max_value: expected"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: id}}, severity: high}}]", "critical, warning, info, found 'high'"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: id}}, sverity: info}}]", "[0].sverity: expected one of type, kwargs"),
        (f"[{{type: {NOT_NULL}, kwargs: {{column: id}}, description: 1}}]", "[0].description: expected text, found 1"),
        ("none.json", ": expected a suite of Great Expectations in JSON, found [Errno 2]"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(expectations: str, fault: str) -> None:
    with pytest.raises(PolicyError) as refused:
        load("/etc/tables.yaml", text=policy(expectations))
    assert str(refused.value).startswith("/etc/tables.yaml:5: tables[0].expectations")
    assert fault in str(refused.value)


def test_a_suite_is_read_beside_the_policy(tmp_path: Path) -> None:
    suite = {
        "name": "orders",
        "id": "3f",
        "meta": {"great_expectations_version": "1.24.1"},
        "notes": None,
        "expectations": [
            {"type": NOT_NULL, "kwargs": {"column": "id", "mostly": 0.5}, "meta": {}, "id": "1", "severity": "info"},
            {"type": "expect_column_to_exist", "kwargs": {"column": "gone"}, "severity": "critical"},
        ],
    }
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites/orders.json").write_text(json.dumps(suite, indent=2))
    (tmp_path / "tables.yaml").write_text(policy("suites/orders.json"))
    found = load(tmp_path / "tables.yaml").effective("a").own_request(())
    assert found is not None
    assert [(e.type, e.severity, e.columns) for e in found.expectations] == [
        (NOT_NULL, "info", {"column": ("id",)}),
        ("expect_column_to_exist", "critical", {}),
    ]
    place = f"{tmp_path}/suites/orders.json:12: expectations[0].kwargs.column"
    assert found.expectations[0].places["column"] == place


@pytest.mark.parametrize(
    ("suite", "fault"),
    [
        ("{", "in JSON, found Expecting"),
        ('{"expectation_suite_name": "old", "expectations": 1}', "found no list expectations in"),
        ('{"expectations": [\n{"expectation_type": "x"}]}', "s.json:2: expectations[0]: expected an expectation"),
        (
            f'{{"expectations": [{{"type": "{NOT_NULL}",\n"kwargs": {{"column": ""}}}}]}}',
            "s.json:2: expectations[0].kwargs",
        ),
    ],
)
def test_a_suite_that_is_wrong_makes_its_table_unusable(suite: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(suite)
    text = policy("s.json") + "  - {name: b, table: 'delta:/b'}\n"
    loaded = load_usable(tmp_path / "tables.yaml", text=text)
    assert [table.name for table in loaded.tables] == ["b"]
    (unusable,) = loaded.unusable
    assert unusable.fault.startswith(f"{tmp_path}/tables.yaml:5: tables[0].expectations: ") and fault in unusable.fault


def test_every_type_that_spark_can_be_asked_has_a_schema() -> None:
    assert len(types()) > 40 and "unexpected_rows_expectation" in types()
    assert not list(wrong_arguments("expect_compound_columns_to_be_unique", {"column_list": ["a", "b"]}))
    assert list(wrong_arguments("expect_compound_columns_to_be_unique", {"column_list": "a"}))


@pytest.mark.parametrize(
    ("expectations", "fine"),
    [
        ("s.json", True),
        ([], True),
        ("", False),
        ([{}], False),
        ([{"type": "expect_x", "severity": "high"}], False),
        ([{"type": NOT_NULL, "kwargs": {"column": "id"}, "severity": "info", "description": "ids"}], True),
        ([{"type": NOT_NULL, "kwargs": {"column": "id"}, "other": 1}], False),
    ],
)
def test_the_editor_schema_knows_their_shape(expectations: object, fine: bool) -> None:
    document = {"version": 1, "defaults": {"expectations": expectations}}
    assert policy_schema().is_valid(document) is fine


@pytest.mark.slow
def test_reading_expectations_does_not_import_great_expectations(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(policy(f"[{{type: {NOT_NULL}, kwargs: {{column: id}}}}]"))
    code = (
        "import sys; from nightkeep.policy import load; before = 'jsonschema' in sys.modules\n"
        "load(sys.argv[1]); print(before, *{'great_expectations', 'pyspark', 'pandas', 'numpy'} & sys.modules.keys())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "tables.yaml")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "jobs",
    )
    assert run.stdout.split() == ["False"]
