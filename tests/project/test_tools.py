"""`.ci/tools` lists every tool that is missing at once, and its list has whatever the drivers of the engines start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.pages import ROOT

TOOLS = ROOT / ".ci/tools"
NEEDED = ("bash", "sed", "sort")

pytestmark = pytest.mark.slow


def listed(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOLS], env={"PATH": str(path)}, capture_output=True, text=True, timeout=60, check=False)


def test_a_bare_machine_lacks_all_of_them_in_one_list(tmp_path: Path) -> None:
    for name in (*NEEDED, "env"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    found = listed(tmp_path)
    assert found.returncode == 1
    missing = re.findall(r"^  (\S+)", found.stderr, re.MULTILINE)
    assert {"python3.11", "git", "make", "java", "javac", "mvn", "go", "node", "npm"} <= set(missing)
    (line,) = re.findall(r"apt-get install -y (.*)", found.stderr)
    assert {"maven", "golang-go", "nodejs", "npm", "openjdk-17-jdk-headless", "python3.11"} <= set(line.split())


def test_an_old_java_is_named(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    found = listed(Path(f"{tmp_path}{os.pathsep}{os.environ['PATH']}"))
    assert "java 17 or later (found 11)" in found.stderr


def test_this_machine_lacks_nothing() -> None:
    assert subprocess.run([TOOLS], capture_output=True, timeout=60, check=False).returncode == 0


def test_the_drivers_start_no_other_tool() -> None:
    """Whatever the drivers name with its package is in the list."""
    text = TOOLS.read_text()
    for driver in (ROOT / "tests/drivers").glob("*.py"):
        for name in re.findall(r'\b(?:tool|program|found)\("([a-z]+)", "[a-z0-9-]+"\)', driver.read_text()):
            assert re.search(rf"^need {name} |lacks \"?{name}", text, re.MULTILINE), f"{driver.name}: {name}"
