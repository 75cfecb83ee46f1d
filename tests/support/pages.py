"""Markdown -> blocks, links and anchors; blocks -> one run of a page's commands, in order, in one shell.

A fenced block of `sh` or `python` says how it is run: `run` in every test, `slow` only behind `make docs-test`,
`needs: ...` by nobody, as it needs what a test does not have. The next block, if it is `text`, is what it prints;
`...` stands for anything there.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAMS = {"sh", "python"}
_MARK = re.compile(r"run|slow|needs: \S.*")


@dataclass(slots=True)
class Block:
    """One fenced block; `mark` is what follows its language, `line` the line of its fence."""

    line: int
    language: str
    mark: str
    text: str
    printed: str | None = None

    @property
    def is_program(self) -> bool:
        return self.language in _PROGRAMS

    @property
    def is_marked(self) -> bool:
        return bool(_MARK.fullmatch(self.mark))

    @property
    def script(self) -> str:
        return self.text if self.language == "sh" else f"python - <<'END_OF_BLOCK'\n{self.text}END_OF_BLOCK\n"


def blocks(page: str) -> list[Block]:
    """Fenced blocks in order, each with what it is said to print."""
    found = []
    for each in _FENCED.finditer(page):
        language, _, mark = each[1].partition(" ")
        found.append(Block(page.count("\n", 0, each.start()) + 1, language, mark, each[2]))
    for block, after in pairwise(found):
        if block.is_program and after.language == "text":
            block.printed = after.text
    return found


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", page)


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: str) -> set[str]:
    """What GitHub makes of the headings."""
    heads = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head) for head in heads)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in plain}


def run_blocks(program: Sequence[Block], folder: Path, kept: Path, environ: Mapping[str, str]) -> None:
    """Run the blocks in one shell in `folder`; what block N prints is in `kept`/N.out and N.err.

    The first command that fails ends the shell, and raises AssertionError with its block.
    """
    lines = ["set -e -o pipefail", f"cd '{folder}'"]
    for number, block in enumerate(program):
        lines += [f"exec > '{kept}/{number}.out' 2> '{kept}/{number}.err'", block.script]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], env=dict(environ), stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        last = max((int(path.stem) for path in kept.glob("*.out")), default=0)
        told = "".join((kept / f"{last}.{stream}").read_text() for stream in ("out", "err"))
        raise AssertionError(f"line {program[last].line}: expected status 0, found {done.returncode}:\n{told}")


def matches(expected: str, printed: str) -> bool:
    """Whether `printed` is what is expected, where `...` stands for anything, line ends included. A line of it alone
    stands for any number of lines, or none."""
    stands = {"...\n": r"(?:.*?\n)?", "...": ".*?"}
    parts = re.split(r"(^\.\.\.\n|\.\.\.)", expected.strip(), flags=re.MULTILINE)
    pattern = "".join(stands.get(part) or re.escape(part) for part in parts)
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def variables(pages: Iterable[str]) -> set[str]:
    """Environment variables of ours that the pages name; one that ends in `_` stands for several."""
    return {name for page in pages for name in re.findall(r"\bNIGHTKEEP_[A-Z_]+", page)}
