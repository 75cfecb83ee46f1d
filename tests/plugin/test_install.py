"""The lines of docs/airflow.md that install Airflow's side: one resolver run, without pyspark, and found once."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import jsonschema
import pytest
from packaging.requirements import Requirement
from tests.support.installed import ROOT, build_wheel, call
from tests.support.pages import blocks

import nightkeep
from nightkeep_airflow.provider import get_provider_info

PAGE = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")

IMPORTS = """
import sys
from nightkeep_airflow.dags import nightly
made = nightly("team", policy="tables.yaml", reports="/reports", pool="lake", queue="big", connection="lake_spark")
care = made.get_task("group.care")
print(care.pool, care.queue)
print("pyspark" in sys.modules, "great_expectations" in sys.modules)
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the lock and the wheels, as after `make wheel`."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "requirements.txt").symlink_to(ROOT / "requirements.txt")
    for source in (ROOT, ROOT / "plugins"):
        build_wheel(folder / "dist", source)
    return folder


def _required(wheel: Path) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        found = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []
    return [Requirement(each) for each in found]


@pytest.mark.extended
def test_airflow_finds_dags_and_plugin_after_the_lines_of_the_page(clone: Path, tmp_path: Path) -> None:
    (lines,) = (block.text for block in blocks(PAGE) if "-c requirements.txt" in block.text)
    call(clone, "bash", "-ec", lines)
    environment = clone / "airflow-environment"
    assert not list(environment.glob("lib/*/site-packages/pyspark-*"))
    (tmp_path / "tables.yaml").write_text("version: 1\n", encoding="utf-8")
    printed = call(tmp_path, str(environment / "bin" / "python"), "-c", IMPORTS)
    assert printed.splitlines()[-2:] == ["lake big", "False False"]


def test_no_extra_of_the_wheels_asks_for_an_exact_release_of_spark_or_airflow(clone: Path) -> None:
    library, plugin = (next((clone / "dist").glob(f"{name}-*.whl")) for name in ("nightkeep", "nightkeep_airflow"))
    asked = {each.name: each for each in (*_required(library), *_required(plugin))}
    assert asked["pyspark"].specifier.contains("3.5.8") and asked["pyspark"].specifier.contains("4.3.0")
    airflow = asked["apache-airflow"].specifier
    assert [airflow.contains(each) for each in ("3.0.6", "3.1.8", "3.2.2", "3.3.2")] == [False, True, True, True]
    assert not {"pyspark", "great-expectations"} & {each.name for each in _required(plugin)}
    assert not {"pyspark", "great-expectations"} & {each.name for each in _required(library) if each.marker is None}
    assert asked["nightkeep"].specifier.contains(nightkeep.__version__)
    assert asked["nightkeep-airflow"].specifier.contains(nightkeep.__version__)


@pytest.mark.slow
@pytest.mark.parametrize("places", [("entry point",), ("folder",), ("entry point", "folder")], ids=" and ".join)
def test_the_plugin_registers_once(clone: Path, tmp_path: Path, places: tuple[str, ...]) -> None:
    (plugin,) = (clone / "dist").glob("nightkeep_airflow-*.whl")
    folder, site = tmp_path / "plugins", tmp_path / "site"
    folder.mkdir()
    paths = [str(ROOT / "jobs")]
    if "folder" in places:
        (folder / "nightkeep_airflow").symlink_to(ROOT / "plugins" / "nightkeep_airflow")
    if "entry point" in places:
        zipfile.ZipFile(plugin).extractall(site)
        paths.append(str(site))
    script = (
        "import json, logging; from airflow import plugins_manager as pm; loaded, errors = pm._get_plugins();"
        "import sys; ours = [name for name in ('dags', 'tasks', 'settings', 'pages') if name in sys.modules];"
        "print(json.dumps([[p.name for p in loaded], errors, [v['url_route'] for v in pm._get_ui_plugins()[0]], ours]))"
    )
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))},
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    names, errors, routes, modules = json.loads(done.stdout.splitlines()[-1])
    assert (names.count("nightkeep"), errors) == (1, {})
    assert routes == ["nightkeep-reports", "nightkeep-run"]
    # Files of the folder that are no plugin would stand in for modules of these names that a team has.
    assert modules == []


def test_what_airflow_lists_of_the_package_fits_its_schema() -> None:
    found = importlib.util.find_spec("airflow")
    assert found is not None and found.submodule_search_locations
    schema = Path(found.submodule_search_locations[0]) / "provider_info.schema.json"
    jsonschema.validate(get_provider_info(), json.loads(schema.read_text(encoding="utf-8")))
