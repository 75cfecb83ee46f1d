"""What README and docs say, held to what is there: commands run as printed, links lead somewhere, tables are whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.pages import PAGES, ROOT, anchors, blocks, links, matches, run_blocks, variables

COMMAND = Path(sys.executable).with_name("nightkeep")
SLOW = "slow" in os.environ.get("NIGHTKEEP_DOCS", "")
RUN = ("run", "slow") if SLOW else ("run",)
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
RUNNABLE = [name for name, text in TEXTS.items() if any(b.is_program and b.mark in RUN for b in blocks(text))]
OURS = (
    "AIRFLOW",
    "AWS",
    "GX",
    "MAKE",
    "MFLAGS",
    "NIGHTKEEP",
    "PYICEBERG",
    "PYSPARK",
    "PYTEST",
    "PYTHON",
    "SPARK",
    "VIRTUAL",
)
each_page = pytest.mark.parametrize("name", TEXTS)


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What somebody has who has just cloned the repository: nothing of ours is set or on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    kept["PATH"] = os.pathsep.join(p for p in kept["PATH"].split(os.pathsep) if not Path(p).is_relative_to(ROOT))
    return kept if SLOW else {**kept, "HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, environ: Mapping[str, str]) -> Path:
    """A clone; for a quick run one that shares this one's files and environment, and has sample tables of its own."""
    folder = tmp_path_factory.mktemp("clone") / "nightkeep"
    if SLOW:
        subprocess.run(["git", "clone", "-q", "--no-local", str(ROOT), str(folder)], check=True)
        return folder
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name not in (".git", ".work"):
            (folder / path.name).symlink_to(path)
    subprocess.run(["make", "-s", "tables"], cwd=folder, env=environ, check=True)
    return folder


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNABLE)
def test_commands_of_a_page_run_in_order(name: str, clone: Path, environ: Mapping[str, str], tmp_path: Path) -> None:
    program = [block for block in blocks(TEXTS[name]) if block.is_program and block.mark in RUN]

    run_blocks(program, clone, tmp_path, environ)

    for number, block in enumerate(program):
        printed = (tmp_path / f"{number}.out").read_text()
        assert block.printed is None or matches(block.printed, printed), f"line {block.line}:\n{printed}"


@each_page
def test_a_program_states_how_it_is_run(name: str) -> None:
    found = blocks(TEXTS[name])
    assert not [block for block in found if block.is_program and not block.is_marked]
    commands = re.compile(r"^(\$ )?(nightkeep|make|airflow|docker|spark-submit|pip|python\S*) ", re.MULTILINE)
    assert not [block for block in found if not block.is_program and commands.search(block.text)]


@each_page
def test_links_lead_somewhere(name: str) -> None:
    folder = (ROOT / name).parent
    for link in links(TEXTS[name]):
        target, _, anchor = link.partition("#")
        if "://" not in link:
            path = (folder / target).resolve() if target else ROOT / name
            assert path.exists(), link
            assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), link


def test_every_page_is_reached_from_the_readme() -> None:
    pending, seen = ["README.md"], set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            paths = [(ROOT / name).parent / link.partition("#")[0] for link in links(TEXTS[name]) if "://" not in link]
            named = [Path(os.path.normpath(path)).relative_to(ROOT).as_posix() for path in paths]
            pending += [each for each in named if each in TEXTS]
    assert seen == TEXTS.keys()


@pytest.mark.slow
def test_every_command_is_listed() -> None:
    listed = set(re.findall(r"^\| `nightkeep (\w+)", TEXTS["docs/commands.md"], re.MULTILINE))

    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout

    assert listed == set(re.findall(r"^\W*(\w+)  +\S", shown.split("Commands")[1], re.MULTILINE))


@each_page
def test_what_a_page_makes_can_be_made(name: str) -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"(?:^|`)make ([a-z-]+)", TEXTS[name], re.MULTILINE)
    assert not [target for target in named if not re.search(rf"^{target}( [a-z-]+)*:", made, re.MULTILINE)]


def test_variables_that_pages_name_are_read_by_somebody() -> None:
    files = [path for folder in ("jobs", "plugins", "dags", "docker", "tests") for path in (ROOT / folder).rglob("*.*")]
    texts = [p.read_text(encoding="utf-8") for p in [*files, ROOT / "Makefile"] if p.suffix in (".py", ".yaml", "")]
    composed = r"MAX_[A-Z_]*|[A-Z_]+_MINUTES"
    for name in variables(TEXTS.values()):
        stem = name.removeprefix("NIGHTKEEP_")
        short = stem.removesuffix("_MINUTES") if re.fullmatch(composed, stem) else name
        assert any(short.lower() in text.lower() for text in texts), name


def test_the_readme_is_short_and_its_pictures_are_small() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 200
    images = [path for path in (ROOT / "docs/images").iterdir() if path.is_file()]
    assert images and not [path for path in images if path.stat().st_size >= 200_000]
