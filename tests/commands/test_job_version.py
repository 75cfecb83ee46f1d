"""A job and whoever submits it: versions that differ work together, or a sentence says so before any work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightkeep.commands.job import check_job, run_job, sweep_job
from nightkeep.errors import UsageError
from nightkeep.model.version import __version__, works_with

MAJOR, MINOR = __version__.split(".")[:2]
JOBS = {"run": lambda told: run_job(told, operations=()), "check": check_job, "sweep": sweep_job}


def arguments(folder: Path, *more: str) -> list[str]:
    policy = folder / "tables.yaml"
    policy.write_text(f"version: 1\ntables:\n  - {{name: gone, table: 'delta:{folder}/gone'}}\n")
    where = ["--policy", str(policy), "--reports", str(folder / "reports"), "--result", str(folder / "result.json")]
    return [*where, "--tables", "gone", "--run-id-prefix", "night", *more]


@pytest.mark.parametrize(
    ("other", "works"),
    [
        (__version__, True),
        (f"{MAJOR}.{MINOR}.99", True),
        (f"{MAJOR}.{MINOR}.0rc1", True),
        (f"{MAJOR}.{int(MINOR) + 1}.0", False),
        (f"{int(MAJOR) + 1}.{MINOR}.0", False),
        ("", False),
    ],
)
def test_the_two_first_numbers_count(other: str, works: bool) -> None:
    assert works_with(other) is works


@pytest.mark.parametrize("job", JOBS)
def test_a_job_of_another_version_says_so_and_does_nothing(tmp_path: Path, job: str) -> None:
    other = f"{int(MAJOR) + 1}.0.0"
    with pytest.raises(UsageError, match=f"expected a job of Nightkeep {other}, .* found {__version__} in the"):
        JOBS[job](arguments(tmp_path, "--expects", other))
    assert not (tmp_path / "reports").exists() and not (tmp_path / "result.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("expects", [("--expects", f"{MAJOR}.{MINOR}.99"), ()])
def test_its_result_names_its_own_version(tmp_path: Path, expects: tuple[str, ...]) -> None:
    assert run_job(arguments(tmp_path, *expects), operations=()) == 0
    (entry,) = json.loads((tmp_path / "result.json").read_text())
    assert (entry["outcome"], entry["nightkeep"]) == ("failed", __version__)
