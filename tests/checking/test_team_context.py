"""Results of the check in a team's own project of Great Expectations, which reads them as its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import great_expectations as gx
import pytest
from great_expectations.data_context.data_context.file_data_context import FileDataContext
from pyspark.sql import SparkSession
from tests.checking.published_samples import NAMES, published
from tests.checking.test_own_expectations import expectation, policy
from tests.records.test_kept_index import document

from nightkeep.checking.post_commit_check import _shared_with_team
from nightkeep.model import Outcome
from nightkeep.policy import load
from nightkeep.records import CheckStatus

VALIDATION: dict[str, Any] = {
    "success": True,
    "results": [],
    "suite_name": "the same rows",
    "suite_parameters": {},
    "statistics": {"evaluated_expectations": 0, "successful_expectations": 0, "unsuccessful_expectations": 0},
    "meta": {},
}


def project(folder: Path) -> Path:
    """A project as Great Expectations makes one."""
    gx.get_context(mode="file", project_root_dir=folder)
    return folder


def results(folder: Path) -> dict[tuple[str, ...], Any]:
    """What the project itself reads, by suite, run and batch."""
    store = FileDataContext(context_root_dir=folder / "gx").validation_results_store
    found = {key: store.get(key) for key in store.list_keys()}
    return {(key.to_tuple()[0], key.run_id.run_name, key.batch_identifier): each for key, each in found.items()}


def test_the_results_of_a_run_are_read_by_the_project(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = project(tmp_path / "team")
    file = (team / "gx" / "great_expectations.yml").read_bytes()
    settings = policy(
        expectation("column_values_to_not_be_null", "warning", column="page"),
        expectation("table_row_count_to_equal", "warning", value=-1),
        check="{results_context: team}",
    )
    made = published(tmp_path, NAMES["delta"], settings, monkeypatch, spark)
    done = made.check(spark)
    assert done.outcome is Outcome.VERIFIED
    kept = json.loads(Path(str(done.expectations.docs)).read_text())
    found = results(team)
    assert len(found) == len(kept) == 2
    for number, ours in enumerate(kept, 1):
        name = f"nightkeep-{done.table}-{ours['suite_name']}".replace(" ", "-").replace(":", "-").replace("--", "-")
        ((_, read),) = [(key, each) for key, each in found.items() if key[2] == f"{done.operation}-{number}"]
        assert read.suite_name.replace("--", "-") == name and read.success == ours["success"]
        assert [each.success for each in read.results] == [each["success"] for each in ours["results"]]
        assert read.meta["nightkeep_table"] == done.table
    # A check that is repeated replaces its results, and the project shows them on its own pages.
    made.check(spark)
    assert results(team).keys() == found.keys()
    assert (team / "gx" / "great_expectations.yml").read_bytes() == file
    context = FileDataContext(context_root_dir=team / "gx")
    (index,) = context.build_data_docs().values()
    pages = Path(index.removeprefix("file://")).parent.rglob("*.html")
    assert any("nightkeep-" in str(each) and "Expect" in each.read_text() for each in pages)


BROKEN = {
    "no folder": None,
    "no project": {},
    "no YAML": {"great_expectations.yml": "a: [\n"},
    "another YAML": {"great_expectations.yml": "- 1\n"},
    "a store that is none": {"great_expectations.yml": "config_version: 4\nstores: {}\n"},
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_project_that_cannot_be_used_is_one_line(tmp_path: Path, kind: str) -> None:
    (tmp_path / "tables.yaml").write_text(
        "version: 1\ntables:\n  - {name: t, table: 'delta:/d/t', check: {results_context: team}}\n"
    )
    files = BROKEN[kind]
    if files is not None:
        (tmp_path / "team").mkdir()
        for name, text in files.items():
            (tmp_path / "team" / name).write_text(text)
    done = document("t", 0, Outcome.VERIFIED)
    found = _shared_with_team(done, [VALIDATION], load(tmp_path / "tables.yaml").effective("t"))
    assert (found.outcome, found.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED)
    reason = str(found.expectations.reason)
    assert reason.startswith(f"the results are not in {tmp_path}/team: ") and "\n" not in reason
    # Great Expectations itself adds folders to a project with such a file, and nobody adds a project.
    kept = {} if files is None else {each.name: each.read_text() for each in (tmp_path / "team").glob("*.yml")}
    assert kept == (files or {}) and (files is not None) == (tmp_path / "team").exists()
    assert files or sorted(each.name for each in tmp_path.rglob("*")) == sorted(
        ["tables.yaml", *["team"] * (files == {})]
    )


def test_a_policy_that_names_no_project_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text("version: 1\ntables:\n  - {name: t, table: 'delta:/d/t'}\n")
    done = document("t", 0, Outcome.VERIFIED)
    assert _shared_with_team(done, [VALIDATION], load(tmp_path / "tables.yaml").effective("t")) is done


def test_a_project_is_named_from_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "a.yaml").write_text(
        "tables:\n  - {name: t, table: 'delta:/d/t', check: {results_context: ../gx}}\n"
    )
    (tmp_path / "tables.yaml").write_text("version: 1\nimports: [teams/a.yaml]\n")
    found = load(tmp_path / "tables.yaml").effective("t").results_context
    assert found == f"{tmp_path}/teams/../gx"
