"""The place of reports, tried for real: a folder, a file in its way, a bucket, an endpoint without a server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.drivers.s3_server import SECRET_KEY, Bucket
from tests.drivers.toolchain import free_port
from tests.support.processes import child

from nightkeep.readiness.finding import Readiness
from nightkeep.readiness.policy_side import read_policy
from nightkeep.readiness.reports_side import acting_as, try_reports


def test_a_folder_is_written_to_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "document.json").write_text("{}")
    found = try_reports(str(tmp_path))
    assert found.status is Readiness.PASSED and [*tmp_path.iterdir()] == [tmp_path / "document.json"]
    assert f"({os.getuid()})" in found.found and "drwx" in found.found


def test_a_file_in_the_way_fails_for_good_and_by_name(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")
    found = try_reports(str(tmp_path / "reports"))
    assert found.status is Readiness.FAILED and found.stops_every_run
    assert str(tmp_path / "reports") in str(found) and f"as user {acting_as('').removeprefix('user ')}" in found.found


def try_as_nobody(pipe: Connection, folder: str) -> None:
    os.setuid(65534)
    found = try_reports(folder)
    pipe.send(f"{found.status} {found.may_pass} {found.found}")


@pytest.mark.slow
def test_who_may_not_write_is_named() -> None:
    """In a child of another user, as a superuser may write everywhere."""
    if os.getuid():
        pytest.skip("only a superuser becomes another user")
    folder = tempfile.mkdtemp(prefix="nightkeep-closed-")
    os.chmod(folder, 0o755)
    with child(try_as_nobody, folder) as process:
        text = process.hear()
    os.rmdir(folder)
    assert text.startswith("failed False") and "(65534)" in text and "ermission" in text


@pytest.mark.slow
def test_a_bucket_is_written_to_and_left_as_it_was(s3_bucket: Bucket) -> None:
    found = try_reports(f"{s3_bucket.uri}/nights")
    assert found.status is Readiness.PASSED
    assert "AWS_ACCESS_KEY_ID, " in found.found and SECRET_KEY not in str(found.to_json())
    assert not [path for path in s3_bucket.folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_bucket_that_does_not_exist_is_named_with_the_variables_that_are_set(s3_bucket: Bucket) -> None:
    found = try_reports("s3://no-such-bucket-here/nights")
    assert found.status is Readiness.FAILED and "no-such-bucket-here" in str(found)
    assert "AWS_SECRET_ACCESS_KEY" in found.found and SECRET_KEY not in str(found)


def test_an_address_that_no_store_has_names_the_option() -> None:
    found = try_reports("ftp://somewhere/reports")
    assert found.status is Readiness.FAILED and "NIGHTKEEP_REPORTS" in str(found)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The environment of an endpoint at which no server listens."""
    told = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "sssssssssss", "AWS_REGION": "us-east-1"}
    told["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{free_port()}"
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    return told


@pytest.mark.extended
def test_a_store_that_is_down_may_be_up_at_the_next_try(nowhere: Mapping[str, str]) -> None:
    found = try_reports("s3://bucket/nights")
    assert found.status is Readiness.FAILED and found.may_pass and "sssssssssss" not in str(found)


@pytest.mark.extended
def test_a_policy_in_a_store_that_is_down_may_be_read_at_the_next_try(nowhere: Mapping[str, str]) -> None:
    loaded, (found,) = read_policy("s3://bucket/tables.yaml")
    assert loaded is None and found.stops_every_run and found.may_pass, str(found)
