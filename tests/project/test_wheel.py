"""The wheel: built as `make wheel` does, installed into a bare environment, used from a folder of one's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.support.installed import ROOT, build_wheel, call

import nightkeep

pytestmark = [pytest.mark.slow, pytest.mark.extended]

SAMPLE = ROOT / "samples" / "delta" / "shop.db" / "clicks"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "jobs" / "nightkeep"
    files = {f"nightkeep/{path.relative_to(package)}" for path in package.rglob("*") if path.is_file()}
    files |= {f"nightkeep/job_scripts/{path.name}" for path in (ROOT / "jobs").glob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {name for name in files if "__pycache__" not in name}


def test_the_bare_wheel_plans_reads_and_reports_without_spark(wheel: Path, tmp_path: Path) -> None:
    environment, work = tmp_path / "environment", tmp_path / "work"
    python, command = (str(environment / "bin" / name) for name in ("python", "nightkeep"))
    call(tmp_path, "uv", "venv", "-q", "-p", sys.executable, str(environment))
    lock = str(ROOT / "jobs" / "requirements.txt")
    call(tmp_path, "uv", "pip", "install", "-q", "-p", python, "--no-config", "-c", lock, str(wheel))
    assert not list(environment.glob("lib/*/site-packages/pyspark*"))
    work.mkdir()
    shutil.copytree(SAMPLE, work / "clicks")
    table = f"delta:{work}/clicks"
    asked = "expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: user_id}}]"
    listed = f'tables: [{{name: clicks, table: "{table}", {asked}}}]'
    (work / "tables.yaml").write_text(f"version: 1\n{listed}\n", encoding="utf-8")
    assert call(work, command, "plan", "clicks").startswith("clicks: optimize of version 16, ")
    for words in (("tables",), ("status",), ("explain", "clicks"), ("history",), ("sweep", "clicks")):
        call(work, command, *words)
    assert "not compared with the schemas of Great Expectations" in call(work, command, "validate")
    assert "index.html" in call(work, command, "report")
    rows = f"import nightkeep; print(nightkeep.read({table!r}).read_all().num_rows)"
    assert call(work, python, "-c", rows) == "3689\n"
    ready = subprocess.run([command, "doctor"], cwd=work, capture_output=True, text=True, check=False)
    assert ready.returncode == 1 and "pyspark: expected pyspark<4.4,>=3.5, found none" in ready.stdout, ready.stderr
    for words in (("run", "clicks"), ("check", "clicks"), ("delete", "clicks", "--rows-where", "user_id = 7")):
        ended = subprocess.run([command, *words], cwd=work, capture_output=True, text=True, check=False)
        assert ended.returncode == 2, ended.stderr
        assert 'pip install "nightkeep[spark]" installs it' in ended.stderr
    assert call(work, python, "-c", rows) == "3689\n"


def test_an_installed_wheel_plans_and_runs_a_table_by_its_path(wheel: Path, tmp_path: Path) -> None:
    environment, work = tmp_path / "environment", tmp_path / "work"
    python = str(environment / "bin" / "python")
    call(tmp_path, "uv", "venv", "-q", "-p", sys.executable, str(environment))
    lock = str(ROOT / "jobs" / "requirements.txt")
    call(tmp_path, "uv", "pip", "install", "-q", "-p", python, "--no-deps", "--require-hashes", "-r", lock)
    call(tmp_path, "uv", "pip", "install", "-q", "-p", python, "--no-deps", str(wheel))
    work.mkdir()
    shutil.copytree(SAMPLE, work / "clicks")
    command = str(environment / "bin" / "nightkeep")
    assert call(work, command, "--version") == f"nightkeep {nightkeep.__version__}\n"
    assert call(work, python, "-m", "nightkeep", "--version") == f"nightkeep {nightkeep.__version__}\n"
    table = f"delta:{work}/clicks"
    assert call(work, command, "plan", table).startswith(f"{table}: optimize of version 16, ")
    assert "1 verified" in call(work, command, "run", table, "--operation", "optimize")
    script = f"import nightkeep; print(nightkeep.report().index.is_file(), len(nightkeep.history({table!r})))"
    assert call(work, python, "-c", script) == "True 1\n"
