"""Layouts of runs in text -> what is picked, and what happens to each file: picker/*.txt, case by case.

A case is a title, options, files, a request, and after ---- the answer. Files are written `name level keys bytes`,
the newest level-0 file first, then in any order: vector, deletes=N or deletes=unknown, age=MILLISECONDS.
NIGHTKEEP_ACCEPT=1 writes the answers of today into the files, for a reviewer to judge by the diff. Every case, and
many random layouts, are asked of Paimon's own classes as well.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout

from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, Schemas
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange
from nightkeep.formats.paimon.rewrite.levels import (
    CompactionPick,
    CompactionRules,
    drops_retracts,
    max_level,
    pick,
    pick_full,
)
from nightkeep.formats.paimon.rewrite.steps import Step, steps
from nightkeep.model import UnitKey

FOLDER = Path(__file__).parent / "picks"
NOON_MS = 1_767_268_800_000
KEY_TYPE = parse_type("INT NOT NULL")


@dataclass
class Case:
    """One layout and one question; `text` is everything above the answer."""

    options: dict[str, str] = field(default_factory=lambda: {"deletion-vectors.enabled": "true"})
    files: list[PaimonDataFile] = field(default_factory=list)
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
        words = {word.partition("=")[0]: word.partition("=")[2] for word in rest}
        deletes = words.get("deletes", "0")
        # The first file listed is the newest.
        sequence = 1000 - len(self.files)
        if "vector" in words:
            self.vectors.append(VectorRange(name, 1, 1, 1))
        self.files.append(
            PaimonDataFile(
                name,
                int(size),
                10,
                int(level.removeprefix("L")),
                (low,),
                (high,),
                sequence,
                sequence,
                0,
                None if deletes == "unknown" else int(deletes),
                NOON_MS - int(words.get("age", "0")),
                {},
            )
        )

    def answer(self) -> Iterator[str]:
        found, todo, drops = self.ours()
        if found is None:
            yield "nothing"
            return
        stay = "" if drops else ", deletes stay"
        yield f"{' '.join(file.name for file in found.files)} -> L{found.output_level}: {found.reason}{stay}"
        yield from (f"  {step.kind.value}: {' '.join(file.name for file in step.files)}" for step in todo)
        untouched = {file.name for file in found.files} - {file.name for step in todo for file in step.files}
        if untouched:
            yield f"  leave: {' '.join(sorted(untouched))}"

    def ours(self) -> tuple[CompactionPick | None, tuple[Step, ...], bool]:
        """The pick, what is done to each file, and whether deletes end."""
        schema = PaimonSchema(0, (PaimonField(0, "k", KEY_TYPE),), (), ("k",), self.options)
        rules = CompactionRules.of(schema, now_ms=NOON_MS)
        schemas = Schemas(schema, {0: schema})
        bucket = Bucket(UnitKey("", 0), {}, b"", "bucket-0", 1, tuple(self.files), tuple(self.vectors), (), schemas)
        found = pick_full(bucket, rules) if self.full else pick(bucket, rules, now_ms=NOON_MS)
        if found is None:
            return None, (), True
        todo = steps(found, rules, top=max_level(bucket.files, rules), key_types=(KEY_TYPE,))
        return found, todo, drops_retracts(bucket, found, rules)

    def wire(self) -> list[dict[str, Any]]:
        """The files in the form of PaimonJava.pick."""
        marked = {vector.data_file for vector in self.vectors}
        return [
            {
                "name": file.name,
                "level": file.level,
                "low": file.min_key[0],
                "high": file.max_key[0],
                "bytes": file.bytes,
                "sequence": file.max_sequence,
                "deletes": file.delete_rows,
                "age": NOON_MS - file.created_ms,
                "vector": file.name in marked,
            }
            for file in self.files
        ]


def _cases(path: Path) -> list[str]:
    return path.read_text().rstrip("\n").split("\n\n")


def _case(text: str) -> Case:
    case = Case()
    for line in text.split("\n----\n")[0].splitlines():
        if not line.startswith("#"):
            case.read(line)
    return case


def _answered(text: str) -> str:
    return "\n".join([text.split("\n----\n")[0], "----", *_case(text).answer()])


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_picks_and_steps(name: str) -> None:
    path = FOLDER / name
    answered = [_answered(text) for text in _cases(path)]
    if os.environ.get("NIGHTKEEP_ACCEPT"):
        path.write_text("\n\n".join(answered) + "\n")
    assert answered == _cases(path)


@pytest.fixture(scope="module")
def store(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("picks") / "table"
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    paimon_java.create(table, Layout(columns=[("k", "INT NOT NULL")], primary_keys=["k"], options=options))
    return table


def _java(engine: PaimonJava, store: Path, case: Case) -> dict[str, Any] | None:
    found = engine.pick(store, case.options, case.wire(), full=case.full)
    if found is None or not found["steps"]:
        return None
    # The order of files within a step has no meaning.
    steps = [(step["kind"], set(step["files"])) for step in found["steps"]]
    return {"level": found["level"], "files": set(found["files"]), "steps": steps, "drops": found.get("drops")}


def _ours(case: Case) -> dict[str, Any] | None:
    found, todo, drops = case.ours()
    if found is None or not todo:
        return None
    steps = [(step.kind.value, {file.name for file in step.files}) for step in todo]
    files = {file.name for file in found.files}
    return {"level": found.output_level, "files": files, "steps": steps, "drops": drops}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_java_answers_alike(name: str, paimon_java: PaimonJava, store: Path) -> None:
    for text in _cases(FOLDER / name):
        case = _case(text)
        assert_alike(_ours(case), _java(paimon_java, store, case), text)


@pytest.mark.parametrize("seed", range(10))
def test_java_answers_alike_for_random_layouts(seed: int, paimon_java: PaimonJava, store: Path) -> None:
    random = Random(seed)
    for _ in range(50):
        case = _random_case(random)
        assert_alike(_ours(case), _java(paimon_java, store, case), str((case.options, case.wire(), case.full)))


def assert_alike(ours: dict[str, Any] | None, java: dict[str, Any] | None, about: str) -> None:
    if java is not None and java["drops"] is None:
        # No file is rewritten with others, so nothing shows what becomes of deletes.
        java["drops"] = ours and ours["drops"]
    assert ours == java, about


def _random_case(random: Random) -> Case:
    trigger = random.randrange(2, 7)
    case = Case(full=random.random() < 0.1)
    case.options |= {"num-sorted-run.compaction-trigger": str(trigger)}
    case.options |= {name: random.choice(values) for name, values in _CHOICES.items() if random.random() < 0.25}
    levels = int(case.options.get("num-levels", str(trigger + 1)))
    unit = random.choice((1, 10, 100))
    for _ in range(random.randrange(8)):
        low = random.randrange(100)
        _add_random(case, random, 0, low, low + random.randrange(40), unit)
    for level in sorted(random.sample(range(1, levels), random.randrange(min(4, levels)))):
        cuts = sorted(random.sample(range(140), 2 * random.randrange(1, 4)))
        for low, high in zip(cuts[::2], cuts[1::2], strict=True):
            _add_random(case, random, level, low, high, unit * random.choice((1, 3, 10)))
    return case


def _add_random(case: Case, random: Random, level: int, low: int, high: int, unit: int) -> None:
    words = []
    if random.random() < 0.15:
        words.append(f"deletes={random.choice(('2', 'unknown'))}")
    if level and random.random() < 0.3:
        words.append("vector")
    words.append(f"age={random.choice((1000, 600_000, 7_000_000))}")
    size = unit * random.randrange(1, 30)
    case.read(f"f{len(case.files)} L{level} {low}..{high} {size} {' '.join(words)}")


_CHOICES = {
    "num-levels": ("3", "4", "7"),
    "compaction.size-ratio": ("0", "30", "100"),
    "compaction.max-size-amplification-percent": ("20", "1000", "100000"),
    "compaction.small-file-ratio": ("0.3", "1.0"),
    "compaction.optimization-interval": ("5 min", "1 h", "1 d"),
    "compaction.total-size-threshold": ("100 b", "2 kb"),
    "compaction.incremental-size-threshold": ("100 b", "2 kb"),
    "target-file-size": ("10 b", "100 b", "1 kb"),
    "lookup-compact": ("gentle",),
    "lookup-compact.max-interval": ("1", "3", "20"),
    "sequence.field": ("k",),
    "deletion-vectors.enabled": ("false",),
    "compaction.force-up-level-0": ("true",),
}
