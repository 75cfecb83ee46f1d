"""Job scripts as processes: whatever ends one is a sentence on stderr and a status, the traceback for who asks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.extended import some_extended

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.stem for path in (ROOT / "jobs").glob("*.py"))
SECRET = "Zq7planted"

# Loaded by every process that has its folder in PYTHONPATH: what happens when a policy is read that nobody planned for.
BROKEN = f"""
import nightkeep.policy
def load_usable(*arguments, **more):
    raise KeyError("no such thing\\nand http://u:{SECRET}@h/ of it " + "x" * 100_000)
nightkeep.policy.load_usable = load_usable
"""


def arguments(script: str, policy: Path) -> list[str]:
    if script == "apply_changes":
        change = policy.with_name("changes.jsonl")
        change.write_text("{}\n")
        return ["--table", "t", "--policy", str(policy), "--batch-id", "b", "--mode", "upsert", str(change)]
    folder = policy.parent
    told = ["--reports", str(folder / "reports"), "--result", str(folder / "result.json")]
    return ["--policy", str(policy), "--table", "t", "--run-id-prefix", "night", *told]


def ended(script: str, *given: str, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NIGHTKEEP")}
    command = [sys.executable, str(ROOT / "jobs" / f"{script}.py"), *given]
    return subprocess.run(
        command, env={**inherited, **environ}, capture_output=True, text=True, check=False, timeout=300
    )


def broken(folder: Path) -> dict[str, str]:
    (folder / "broken").mkdir()
    (folder / "broken/sitecustomize.py").write_text(BROKEN)
    return {"PYTHONPATH": os.pathsep.join([str(folder / "broken"), os.environ.get("PYTHONPATH", "")])}


def one_sentence(done: subprocess.CompletedProcess[str], script: str) -> str:
    assert done.stdout == "" and done.stderr.count("\n") == 1 and len(done.stderr) < 3000, done
    assert done.stderr.startswith(f"{script}.py: ")
    return done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("script", some_extended(SCRIPTS, keep=3))
def test_a_slip_is_one_sentence_and_a_status_of_its_own(script: str, tmp_path: Path) -> None:
    done = ended(script, *arguments(script, tmp_path / "tables.yaml"))
    assert done.returncode == 2 and "tables.yaml" in one_sentence(done, script)


@pytest.mark.few(1)
@pytest.mark.parametrize("script", some_extended(SCRIPTS, keep=3))
def test_a_surprise_is_one_sentence_and_a_failure(script: str, tmp_path: Path) -> None:
    done = ended(script, *arguments(script, tmp_path / "tables.yaml"), **broken(tmp_path))
    told = one_sentence(done, script)
    assert done.returncode == 1 and "KeyError: " in told and "no such thing" in told and SECRET not in told


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("script", "asked", "environ"),
    [("care", ("--debug",), {}), ("sweep_orphans", (), {"NIGHTKEEP_DEBUG": "1"}), ("apply_changes", ("--debug",), {})],
)
def test_its_traceback_is_there_for_who_asks(
    script: str, asked: Sequence[str], environ: dict[str, str], tmp_path: Path
) -> None:
    given = arguments(script, tmp_path / "tables.yaml")
    done = ended(script, *asked, *given, **broken(tmp_path), **environ)
    assert done.returncode == 1 and "Traceback (most recent call last)" in done.stderr
    assert "in load_usable" in done.stderr and SECRET not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"{script}.py: ")


def test_a_table_that_is_refused_has_the_commands_status(tmp_path: Path) -> None:
    """Where a script does nothing but one table; scripts of groups tell outcomes in documents."""
    policy = tmp_path / "tables.yaml"
    policy.write_text("version: 1\ntables:\n  - name: t\n    table: iceberg:nosuch/db.t\n")
    done = ended("apply_changes", *arguments("apply_changes", policy))
    assert done.returncode == 2 and "nosuch" in one_sentence(done, "apply_changes")
    assert ended("care", *arguments("care", policy)).returncode == 0
