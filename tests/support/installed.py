"""The wheel, and programs run in an environment and a folder that know nothing of this clone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = Path(os.environ.get("NIGHTKEEP_UV", ROOT / ".uv" / "bin" / "uv"))
OURS = ("PYTHON", "PYSPARK", "NIGHTKEEP", "VIRTUAL")


def call(folder: Path, *command: str) -> str:
    """What a command prints; `uv` is found by its name. Raises AssertionError where its status is not 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment |= {"PATH": f"{UV.parent}{os.pathsep}{environment['PATH']}"}
    environment |= {"GX_ANALYTICS_ENABLED": "false", "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """The wheel of a source folder, built into `folder` as `make wheel` does."""
    before = set(folder.glob("*.whl"))
    call(ROOT, "uv", "build", "-q", "--wheel", "--out-dir", str(folder), str(source))
    (built,) = set(folder.glob("*.whl")) - before
    return built
