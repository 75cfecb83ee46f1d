"""A policy in a store: it means what it means in a folder, with what lies beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drivers.s3_server import Bucket
from tests.support.commands import said

from nightkeep.errors import PolicyError
from nightkeep.places import write_file
from nightkeep.policy import faults_of, load, load_usable

SUITE = json.dumps({"expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}]})
POLICY = """\
version: 1
imports: [teams/*.yaml, more.yaml]
patterns: [{match: "*", expectations: suite.json}]
tables:
  - {name: orders, table: "delta:lake/orders"}
  - {name: elsewhere, table: "paimon:/warehouse/shop.db/orders"}
"""
FILES = {
    "tables.yaml": POLICY,
    "suite.json": SUITE,
    "more.yaml": "tables: [{name: more, table: 'delta:/lake/more'}]\n",
    "teams/a.yaml": "tables: [{name: a.one, table: 'delta:../one'}]\n",
    "teams/b.yaml": "tables: [{name: b.two, table: 'delta:s3://lake/two', target_size: nothing}]\n",
    "teams/readme.md": "no policy",
}


@pytest.fixture(params=[pytest.param("bucket", marks=pytest.mark.slow), "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        (tmp_path / "policies/teams").mkdir(parents=True)
        yield f"file://{tmp_path}/policies"
        return
    bucket: Bucket = request.getfixturevalue("s3_bucket")
    yield f"{bucket.uri}/policies"


def test_imports_suites_and_relative_places_are_beside_the_file(place: str) -> None:
    for name, text in FILES.items():
        write_file(f"{place}/{name}", text)
    policy = load_usable(f"{place}/tables.yaml")
    store = place.rpartition("/")[0]
    assert {table.name: table.address.location for table in policy.tables} == {
        "orders": f"{place}/lake/orders",
        "elsewhere": "/warehouse/shop.db/orders",
        "more": "/lake/more",
        "a.one": f"{place}/one",
    }
    assert [(table.name, table.fault.partition(": ")[0]) for table in policy.unusable] == [
        ("b.two", f"{place}/teams/b.yaml:1")
    ]
    assert store and policy.effective("orders").settings.expectations[0].kwargs == {"column": "id"}
    with pytest.raises(PolicyError, match="target_size"):
        load(f"{place}/tables.yaml")


def test_what_is_not_there_is_named_by_its_address(place: str) -> None:
    with pytest.raises(PolicyError) as raised:
        load(f"{place}/tables.yaml")
    assert str(raised.value).startswith(f"{place}/tables.yaml:1: expected a policy file, found ")
    write_file(f"{place}/tables.yaml", "version: 1\nimports: [gone.yaml]\n")
    (fault,) = faults_of(load_usable(f"{place}/tables.yaml"))
    assert fault.startswith(f"{place}/gone.yaml:1: expected a policy file, found ")


@pytest.mark.slow
def test_a_store_lists_one_folder_of_imports(s3_bucket: Bucket) -> None:
    file = f"{s3_bucket.uri}/tables.yaml"
    write_file(file, "version: 1\nimports: ['teams/*/policy.yaml']\n")
    (fault,) = faults_of(load_usable(file))
    assert (
        fault
        == f"{file}:2: imports[0]: expected a glob in the last part of the name only, where the policy is in a store"
    )


def test_the_command_takes_the_address_of_a_policy(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_file(f"{place}/tables.yaml", "version: 1\ntables: [{name: t, table: 'delta:t'}]\n")
    answer = said(capsys, "validate", "--policy", f"{place}/tables.yaml")
    assert (answer.status, answer.out) == (0, f"{place}/tables.yaml: no fault\n")
