"""The lines of docs/airflow.md that install Airflow beside Spark: after them a session starts."""

from __future__ import annotations

import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from tests.support.installed import ROOT, build_wheel, call
from tests.support.pages import blocks

import nightkeep

PAGE = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")

SESSION = """
from pyspark.sql import SparkSession
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
import nightkeep
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.range(3).count(), SparkSubmitOperator.__name__, nightkeep.__version__)
spark.stop()
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the lock and the wheel, as after `make wheel`."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "requirements.txt").symlink_to(ROOT / "requirements.txt")
    build_wheel(folder / "dist")
    return folder


@pytest.mark.extended
def test_a_session_starts_after_the_lines_of_the_page(clone: Path, tmp_path: Path) -> None:
    (lines,) = (block.text for block in blocks(PAGE) if "requirements.txt" in block.text)
    call(clone, "bash", "-ec", lines)
    environment = clone / "airflow-environment"
    assert not list(environment.glob("lib/*/site-packages/pyspark_client-*"))
    printed = call(tmp_path, str(environment / "bin" / "python"), "-c", SESSION)
    assert f"3 SparkSubmitOperator {nightkeep.__version__}" in printed.splitlines()


def test_no_extra_of_the_wheel_asks_for_what_overwrites_pyspark(clone: Path) -> None:
    (wheel,) = (clone / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        required = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    assert any("apache-airflow==" in each for each in required)
    assert not [each for each in required if "pyspark-client" in each or "providers-apache-spark" in each]
