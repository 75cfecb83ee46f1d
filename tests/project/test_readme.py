"""The README's examples, run: what it shows is what the command prints."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples.iceberg_places import place

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("nightkeep")


def examples() -> list[tuple[str, str]]:
    """Fenced blocks that start with a prompt: the command, and what it must print."""
    blocks = re.findall(r"```\n\$ (nightkeep [^\n]+)\n(.*?)\n```", README, re.DOTALL)
    assert blocks, "expected examples that start with '$ nightkeep'"
    return blocks


@pytest.mark.parametrize(("command", "printed"), examples())
def test_an_example_prints_what_the_readme_shows(command: str, printed: str, tmp_path: Path) -> None:
    for name in ("paimon", "delta"):
        shutil.copytree(ROOT / "samples" / name, tmp_path / name)
    place(ROOT / "samples" / "iceberg", tmp_path / "iceberg")
    environ = {
        "NIGHTKEEP_WAREHOUSE": str(tmp_path),
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/iceberg/catalog.db",
        "PATH": str(COMMAND.parent),
        "HOME": str(tmp_path),
    }

    done = subprocess.run(
        [COMMAND, *shlex.split(command)[1:]],
        cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == printed.strip()


def test_every_command_of_the_readme_exists_and_none_is_left_out() -> None:
    told = set(re.findall(r"^\| `nightkeep (\w+)", README, re.MULTILINE))

    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout

    assert told == set(re.findall(r"^\W*(\w+)  +\S", shown.split("Commands")[1], re.MULTILINE))


def test_the_two_commands_are_made() -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([a-z-]+)", README))
    assert {"nightly", "test"} <= named
    assert all(re.search(rf"^{name}:", made, re.MULTILINE) for name in named), named


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]
