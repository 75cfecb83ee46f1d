"""The wheel: built as `make wheel` does, installed into a bare environment, used from a folder of one's own."""

from __future__ import annotations

import shutil
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
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == {name for name in files if "__pycache__" not in name}


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
