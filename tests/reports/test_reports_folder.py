"""Reports are kept in a local folder: the address of a store is refused, and no folder of that name is made."""

from pathlib import Path

import pytest

import nightkeep
from nightkeep.commands.job import run_job
from nightkeep.errors import UsageError
from nightkeep.model import Operation
from nightkeep.reports import reports_folder
from nightkeep_airflow.settings import from_environment


@pytest.mark.parametrize("place", ["s3://bucket/reports", "gs://b", "abfss://c@account/r", "hdfs://namenode/r"])
def test_an_address_is_refused_by_its_scheme(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = f"expected a local folder for reports, found an address of {place.partition(':')[0]}; set"
    with pytest.raises(UsageError, match=told):
        nightkeep.history(reports=place)
    # DAG files parse all the same, and hand it to the job.
    assert from_environment({"NIGHTKEEP_REPORTS": place}, tmp_path / "dags").reports == place
    policy = tmp_path / "tables.yaml"
    policy.write_text("version: 1\n")
    job = ["--policy", str(policy), "--tables", "delta:t", "--run-id-prefix", "r", "--result", "found"]
    with pytest.raises(UsageError, match=told):
        run_job([*job, "--reports", place], operations=[Operation.OPTIMIZE])
    assert list(tmp_path.iterdir()) == [policy]


@pytest.mark.parametrize("place", ["reports", "/a/b", "a:b", Path("x/y")])
def test_a_folder_is_taken(place: str | Path) -> None:
    assert reports_folder(place) == str(place)
