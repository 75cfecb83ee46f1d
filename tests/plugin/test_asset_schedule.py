"""A DAG of care behind an asset of somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.airflow_home import airflow_home, with_database

DAG_FILE = """
from airflow.sdk import Asset
from nightkeep_airflow.dags import nightly

nightly("orders_care", schedule=[Asset("lake_load")], policy={policy!r}, reports={reports!r})
"""


@pytest.mark.slow
def test_a_nightly_may_follow_an_asset(tmp_path: Path) -> None:
    airflow = airflow_home(tmp_path, ["t.a"])
    (tmp_path / "team").mkdir()
    text = DAG_FILE.format(policy=str(tmp_path / "tables.yaml"), reports=str(tmp_path / "reports"))
    (tmp_path / "team" / "care.py").write_text(text)
    found = airflow.python(
        f"""
import json
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
bag = DagBag(dag_folder={str(tmp_path / "team")!r}, known_pools={{"nightkeep_spark", "default_pool"}})
dag = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags["orders_care"]))
print(json.dumps({{
    "errors": bag.import_errors,
    "timetable": type(dag.timetable).__name__,
    "waits_for": [key.name for key, _ in dag.timetable.asset_condition.iter_assets()],
}}))
"""
    )
    assert found == {"errors": {}, "timetable": "AssetTriggeredTimetable", "waits_for": ["lake_load"]}


@pytest.mark.slow
def test_an_event_of_the_asset_makes_the_scheduler_start_a_run(airflow_database: Path, tmp_path: Path) -> None:
    airflow = with_database(airflow_home(tmp_path, ["t.a"]), airflow_database)
    (tmp_path / "team").mkdir()
    text = DAG_FILE.format(policy=str(tmp_path / "tables.yaml"), reports=str(tmp_path / "reports"))
    (tmp_path / "team" / "care.py").write_text(text)
    folder = {"AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "team")}
    for command in (("dags", "reserialize"), ("dags", "unpause", "-y", "orders_care")):
        done = airflow.call("airflow", *command, **folder)
        assert done.returncode == 0, done.stdout + done.stderr
    found = airflow.python(
        """
import json
import types
from airflow.assets.manager import asset_manager
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.asset import AssetModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

def runs():
    with create_session() as session:
        runner = SchedulerJobRunner(Job())
        runner._create_dagruns_for_dags(types.SimpleNamespace(commit=session.commit), session)
    with create_session() as session:
        return [[run.dag_id, run.run_type] for run in session.scalars(select(DagRun))]

before = runs()
with create_session() as session:
    asset = session.scalar(select(AssetModel).where(AssetModel.name == "lake_load"))
    asset_manager.register_asset_change(asset=asset.to_serialized(), session=session)
print(json.dumps([before, runs()]))
""",
        **folder,
    )
    assert found == [[], [["orders_care", "asset_triggered"]]]
