"""Layouts of runs in text -> what is picked, and what happens to each file: picker/*.txt, case by case.

A case is a title, options, files, a request, and after ---- the answer. Files are written `name level keys bytes`,
the newest level-0 file first, then in any order: vector, deletes=N or deletes=unknown, age=MILLISECONDS.
NIGHTKEEP_ACCEPT=1 writes the answers of today into the files, for a reviewer to judge by the diff.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nightkeep.formats.paimon.levels import Pick, Rules, max_level, pick, pick_full
from nightkeep.formats.paimon.metadata import Bucket, DataFile, Schemas
from nightkeep.formats.paimon.schema import Field, TableSchema
from nightkeep.formats.paimon.steps import Step, steps
from nightkeep.formats.paimon.types import parse_type
from nightkeep.formats.paimon.vectors import VectorRange
from nightkeep.model import UnitKey

FOLDER = Path(__file__).parent / "picker"
NOON_MS = 1_767_268_800_000
KEY_TYPE = parse_type("INT NOT NULL")


@dataclass
class Case:
    """One layout and one question; `text` is everything above the answer."""

    options: dict[str, str] = field(default_factory=dict)
    files: list[DataFile] = field(default_factory=list)
    vectors: list[VectorRange] = field(default_factory=list)
    full: bool = False

    def read(self, line: str) -> None:
        match line.split():
            case ["options", *pairs]:
                self.options |= dict(pair.split("=", 1) for pair in pairs)
            case ["pick", *words]:
                self.full = words == ["full"]
            case [name, level, keys, size, *rest]:
                self._add(name, level, keys, size, rest)

    def _add(self, name: str, level: str, keys: str, size: str, rest: list[str]) -> None:
        low, high = (int(key) for key in keys.split(".."))
        words = dict(word.split("=") if "=" in word else (word, "") for word in rest)
        deletes = words.get("deletes", "0")
        # The first file listed is the newest.
        sequence = 1000 - len(self.files)
        if "vector" in words:
            self.vectors.append(VectorRange(name, 1, 1, 1))
        self.files.append(
            DataFile(
                name, int(size), 10, int(level.removeprefix("L")), (low,), (high,), sequence, sequence, 0,
                None if deletes == "unknown" else int(deletes), NOON_MS - int(words.get("age", "0")), {},
            )
        )  # fmt: skip

    def answer(self) -> Iterator[str]:
        schema = TableSchema(0, (Field(0, "k", KEY_TYPE),), (), ("k",), self.options)
        rules = Rules.of(schema, now_ms=NOON_MS)
        schemas = Schemas(schema, {0: schema})
        bucket = Bucket(UnitKey("", 0), {}, b"", "bucket-0", 1, tuple(self.files), tuple(self.vectors), None, schemas)
        found = pick_full(bucket, rules) if self.full else pick(bucket, rules, now_ms=NOON_MS)
        if found is None:
            yield "nothing"
            return
        yield _title(found)
        todo = steps(found, rules, top=max_level(bucket.files, rules), key_types=(KEY_TYPE,))
        yield from (f"  {_spelled(step)}" for step in todo)
        untouched = {file.name for file in found.files} - {file.name for step in todo for file in step.files}
        if untouched:
            yield f"  leave: {' '.join(sorted(untouched))}"


def _title(found: Pick) -> str:
    return f"{' '.join(file.name for file in found.files)} -> L{found.output_level}: {found.reason}"


def _spelled(step: Step) -> str:
    return f"{step.kind.value}: {' '.join(file.name for file in step.files)}"


def _cases(path: Path) -> list[str]:
    return path.read_text().rstrip("\n").split("\n\n")


def _answered(text: str) -> str:
    question = text.split("\n----\n")[0]
    case = Case()
    for line in question.splitlines():
        if not line.startswith("#"):
            case.read(line)
    return "\n".join([question, "----", *case.answer()])


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_picks_and_steps(name: str) -> None:
    path = FOLDER / name
    answered = [_answered(text) for text in _cases(path)]
    if os.environ.get("NIGHTKEEP_ACCEPT"):
        path.write_text("\n\n".join(answered) + "\n")
    assert answered == _cases(path)
