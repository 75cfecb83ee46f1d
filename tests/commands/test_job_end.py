"""How a job ends is beside its result, for whoever cannot see its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake

from nightkeep.commands.job import run_job
from nightkeep.environment import ENVIRONMENT_FILE
from nightkeep.errors import UsageError
from nightkeep.records.job_result import JobEnd, end_file, read_end


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A dry run over one table, which starts no Spark."""
    Lake(tmp_path / "t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1]}))
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables: [{{name: t, table: 'delta:{tmp_path}/t'}}]\n")
    places = [f"--policy={tmp_path}/tables.yaml", f"--reports={tmp_path}/reports", f"--result={tmp_path}/result.json"]
    return [*places, "--tables=t", "--run-id-prefix=night", "--dry-run"]


@pytest.mark.slow
def test_a_job_that_did_its_work(tmp_path: Path, words: list[str]) -> None:
    assert run_job(words, operations=()) == 0
    assert read_end(str(tmp_path / "result.json")) == JobEnd(0)
    assert json.loads((tmp_path / "result.json").read_text())[0]["table"] == "t"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--policy=gone.yaml"], "gone.yaml:1: expected a policy file, found "),
        (["--expects=9.0.0"], "--expects: expected a job of Nightkeep 9.0.0"),
        (["--target-size=large"], "--target-size: expected"),
    ],
)
def test_a_job_that_did_not_start_has_its_sentence(
    tmp_path: Path, words: list[str], wrong: list[str], why: str
) -> None:
    with pytest.raises(UsageError):
        run_job([*words, *wrong], operations=())
    end = read_end(str(tmp_path / "result.json"))
    assert end is not None and end.status == 2 and why.partition(":")[0] in end.reason


def test_arguments_that_are_not_understood(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit):
        run_job([*words, "--of-another-release"], operations=())
    assert read_end(str(tmp_path / "result.json")) == JobEnd(2, "its arguments were not understood")


def test_no_secret_is_in_it(tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t-of-this-job")
    with pytest.raises(UsageError):
        run_job([*words, "--policy=/s3cr3t-of-this-job.yaml"], operations=())
    assert "s3cr3t" not in Path(end_file(str(tmp_path / "result.json"))).read_text()


@pytest.mark.slow
def test_variables_of_a_file_are_there_before_the_policy_is_read(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables.yaml").write_text("version: 1\ntables: [{name: t, table: 'delta:${NIGHTKEEP_TEST_LAKE}/t'}]\n")
    (tmp_path / "variables.json").write_text(json.dumps({"NIGHTKEEP_TEST_LAKE": str(tmp_path)}))
    monkeypatch.setenv(ENVIRONMENT_FILE, str(tmp_path / "variables.json"))
    monkeypatch.delenv("NIGHTKEEP_TEST_LAKE", raising=False)
    run_job(words, operations=())
    monkeypatch.setenv("NIGHTKEEP_TEST_LAKE", "so that it is removed at the end")
    assert json.loads((tmp_path / "result.json").read_text())[0]["outcome"] != "failed"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"status": "x"}', "null", "5"])
def test_an_end_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    Path(end_file(str(tmp_path / "result.json"))).write_text(text)
    assert read_end(str(tmp_path / "result.json")) is None
