"""Which variables go to a driver or a worker elsewhere, and how a driver reads them from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightkeep.environment import ENVIRONMENT_FILE, add_from_file, needed_elsewhere
from nightkeep.errors import UsageError
from nightkeep.redaction import is_secret


def test_what_reaches_stores_and_catalogs_goes_and_places_of_this_machine_stay() -> None:
    goes = {
        "AWS_REGION": "eu-central-1",
        "AZURE_STORAGE_ACCOUNT_KEY": "k",
        "PYICEBERG_CATALOG__LAKE__CREDENTIAL": "id:secret",
        "NIGHTKEEP_MAX_FILE_BYTES": "5",
    }
    stays = {
        "PATH": "/usr/bin",
        "PYTHONPATH": "lib",
        "HOME": "/opt",
        "GOOGLE_APPLICATION_CREDENTIALS": "/opt/key.json",
        "PYICEBERG_HOME": "/opt",
        "NIGHTKEEP_POLICY": "tables.yaml",
        "NIGHTKEEP_REPORTS": "s3://lake/reports",
        ENVIRONMENT_FILE: "variables.json",
    }
    assert needed_elsewhere(goes | stays) == goes


@pytest.mark.parametrize(("token", "expected"), [(None, ""), ("t", "t")])
def test_keys_do_not_go_with_the_token_of_another_place(token: str | None, expected: str) -> None:
    given = {"AWS_ACCESS_KEY_ID": "k"} | ({"AWS_SESSION_TOKEN": token} if token else {})
    assert needed_elsewhere(given)["AWS_SESSION_TOKEN"] == expected
    assert "AWS_SESSION_TOKEN" not in needed_elsewhere({"AWS_REGION": "eu"})


def test_a_file_adds_variables_and_what_is_set_stands(tmp_path: Path) -> None:
    file = tmp_path / "variables.json"
    file.write_text(json.dumps({"AWS_REGION": "eu", "AWS_ACCESS_KEY_ID": "k"}))
    environ = {ENVIRONMENT_FILE: str(file), "AWS_REGION": "us"}
    add_from_file(environ)
    assert environ == {ENVIRONMENT_FILE: str(file), "AWS_REGION": "us", "AWS_ACCESS_KEY_ID": "k"}
    add_from_file(nothing := {"AWS_REGION": "us"})
    assert nothing == {"AWS_REGION": "us"}


@pytest.mark.parametrize(
    "text", [None, "", "AWS_SECRET_ACCESS_KEY=s3cr3t", '["s3cr3t"]', '{"A": 1, "B": "s3cr3t"}', "\xff"]
)
def test_a_file_that_cannot_be_read_is_named_without_its_content(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "variables.json"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError) as raised:
        add_from_file({ENVIRONMENT_FILE: str(file)})
    assert str(raised.value).startswith(f"{ENVIRONMENT_FILE}: expected ") and str(file) in str(raised.value)
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("PYICEBERG_CATALOG__LAKE__CREDENTIAL", "id:secret", True),
        ("PYICEBERG_CATALOG__LAKE__URI", "postgresql://user:passw0rd@db/catalog", True),
        ("PYICEBERG_CATALOG__LAKE__URI", "https://catalog", False),
        ("AWS_ENDPOINT_URL", "https://store", False),
        ("MODE", "blue", False),
    ],
)
def test_a_variable_is_a_secret_by_its_name_or_its_value(name: str, value: str, secret: bool) -> None:
    assert is_secret(name, value) is secret
