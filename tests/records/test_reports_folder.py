"""Where reports may be: a local folder, or an address of a bucket. Another address is refused, and nothing is made."""

from pathlib import Path

import pytest

import nightkeep
from nightkeep.commands.job import run_job
from nightkeep.errors import UsageError
from nightkeep.model import Operation
from nightkeep.places import located, report_store, reports_place
from nightkeep_airflow.settings import from_environment


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("ftp://host/r", "expected a local folder for reports, or an address of s3, .*found one of ftp; set"),
        ("hdfs:///reports", "expected hdfs://HOST:PORT/PATH"),
        ("s3://key:secret@bucket/r", "credentials belong into the environment"),
        ("s3://bucket/a//b", "without empty"),
    ],
)
def test_another_address_is_refused(place: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told):
        nightkeep.history(reports=place)
    # DAG files parse all the same, and hand it to the job.
    assert from_environment({"NIGHTKEEP_REPORTS": place}, tmp_path / "dags").reports == place
    policy = tmp_path / "tables.yaml"
    policy.write_text("version: 1\n")
    job = ["--policy", str(policy), "--tables", "delta:t", "--run-id-prefix", "r"]
    with pytest.raises(UsageError, match=told):
        run_job([*job, "--reports", place], operations=[Operation.OPTIMIZE])
    assert list(tmp_path.iterdir()) == [policy]


@pytest.mark.parametrize(
    ("place", "root"),
    [
        ("reports", "reports"),
        ("/a/b", "/a/b"),
        ("a:b", "a:b"),
        (Path("x/y"), "x/y"),
        ("file:///a%20b/c", "/a b/c"),
        ("s3://bucket", "s3://bucket"),
        ("s3a://bucket/a/b/", "s3://bucket/a/b"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("hdfs://namenode:8020/a/b/", "hdfs://namenode:8020/a/b"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
    ],
)
def test_a_folder_or_a_bucket_is_taken(place: str | Path, root: str) -> None:
    assert (reports_place(place), report_store(place).root) == (str(place), root)


def test_a_file_is_found_by_its_address() -> None:
    store, name = located("s3://bucket/reports/shop.orders/run-upgrade.json")
    assert (store.root, name) == ("s3://bucket/reports/shop.orders", "run-upgrade.json")
    assert store.address(name) == "s3://bucket/reports/shop.orders/run-upgrade.json"
    store, name = located("a/b.json")
    assert (store.root, name, located("b.json")[0].address("b.json")) == ("a", "b.json", "b.json")
