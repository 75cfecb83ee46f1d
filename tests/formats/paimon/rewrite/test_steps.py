"""What becomes of each picked file: sections by their definition, and the rules for a file that is alone."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import INT

from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile
from nightkeep.formats.paimon.rewrite.levels import CompactionPick, CompactionRules
from nightkeep.formats.paimon.rewrite.steps import StepKind, sections, steps

BIG = 1 << 30
TOP = 5


def file(
    name: str, keys: tuple[int, int], *, level: int = 0, size: int = BIG, deletes: int | None = 0
) -> PaimonDataFile:
    low, high = keys
    return PaimonDataFile(name, size, 10, level, (low,), (high,), 0, 0, 0, deletes, 0, {})


def rules(**options: str) -> CompactionRules:
    named = {"deletion-vectors.enabled": "true"}
    named |= {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    return CompactionRules.of(PaimonSchema(0, (PaimonField(0, "k", INT),), (), ("k",), named), now_ms=0)


def decided(files: Sequence[PaimonDataFile], output: int = TOP, **options: str) -> list[str]:
    found = steps(CompactionPick(tuple(files), output, ""), rules(**options), top=TOP, key_types=[INT])
    return [f"{step.kind.name} {' '.join(file.name for file in step.files)}" for step in found]


SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8).map(
    lambda spans: [file(f"f{number}", (low, low + width)) for number, (low, width) in enumerate(spans)]
)


def meet(left: PaimonDataFile, right: PaimonDataFile) -> bool:
    return left.min_key <= right.max_key and right.min_key <= left.max_key


@given(SPANS)
def test_files_of_two_sections_share_no_key_and_sections_cannot_be_cut(files: list[PaimonDataFile]) -> None:
    found = sections(files, [INT])
    members = [[file for run in section for file in run] for section in found]
    assert sorted(f.name for section in members for f in section) == sorted(f.name for f in files)
    for left, right in combinations(members, 2):
        assert not any(meet(a, b) for a in left for b in right)
    for section in members:
        reached, pending = set[str](), [section[0]]
        while pending:
            one = pending.pop()
            if one.name not in reached:
                reached.add(one.name)
                pending += [other for other in section if meet(one, other)]
        assert reached == {f.name for f in section}


@given(SPANS)
def test_a_section_has_as_many_runs_as_files_that_hold_one_key(files: list[PaimonDataFile]) -> None:
    for section in sections(files, [INT]):
        for run in section:
            assert not any(meet(a, b) for a, b in combinations(run, 2))
            assert [f.min_key for f in run] == sorted(f.min_key for f in run)
        members = [f for run in section for f in run]
        deepest = max(sum(f.min_key <= (key,) <= f.max_key for f in members) for key in range(15))
        assert len(section) == deepest


@given(SPANS, st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.sampled_from([0, 1, None])), min_size=8))
def test_every_level0_file_is_worked_on_once(
    files: list[PaimonDataFile], kinds: list[tuple[int, bool, int | None]]
) -> None:
    files = [
        file(f.name, (f.min_key[0], f.max_key[0]), level=level, size=BIG if big else 1, deletes=deletes)  # type: ignore[arg-type]
        for f, (level, big, deletes) in zip(files, kinds, strict=False)
    ]
    found = steps(CompactionPick(tuple(files), TOP, ""), rules(), top=TOP, key_types=[INT])
    named = [f.name for step in found for f in step.files]
    assert len(named) == len(set(named))
    assert {f.name for f in files if f.level == 0} <= set(named)
    assert all(len(step.files) == 1 for step in found if step.kind is StepKind.UPGRADE)
    for f in files:
        if any(meet(f, other) for other in files if other is not f):
            assert any(f in step.files for step in found if step.kind is StepKind.MERGE)


@pytest.mark.parametrize(
    ("files", "output", "options", "expected"),
    [
        ([file("a", (1, 2))], TOP, {}, ["UPGRADE a"]),
        ([file("a", (1, 2), deletes=1)], TOP, {}, ["MERGE a"]),
        ([file("a", (1, 2), deletes=None)], TOP, {}, ["MERGE a"]),
        ([file("a", (1, 2), deletes=1)], 3, {}, ["MERGE a"]),
        ([file("a", (1, 2), level=3, deletes=1)], 4, {}, ["UPGRADE a"]),
        ([file("a", (1, 2), level=3, deletes=1)], TOP, {}, ["MERGE a"]),
        ([file("a", (1, 2), level=TOP)], TOP, {}, []),
        ([file("a", (1, 2), deletes=1)], 3, {"deletion_vectors__enabled": "false"}, ["UPGRADE a"]),
        ([file("a", (1, 2), deletes=1)], TOP, {"deletion_vectors__enabled": "false"}, ["MERGE a"]),
        ([file("a", (1, 2))], 3, {"sequence__field": "k"}, ["MERGE a"]),
        ([file("a", (1, 2))], TOP, {"sequence__field": "k"}, ["UPGRADE a"]),
        ([file("a", (1, 2)), file("b", (2, 3))], TOP, {}, ["MERGE a b"]),
        ([file("a", (1, 2)), file("b", (3, 4), size=1)], TOP, {}, ["UPGRADE a", "UPGRADE b"]),
        ([file("a", (1, 2), size=1), file("b", (3, 4), size=1)], TOP, {}, ["MERGE a b"]),
        (
            [file("a", (1, 2), size=1), file("b", (3, 4)), file("c", (5, 6), size=1)],
            TOP,
            {},
            ["UPGRADE a", "UPGRADE b", "UPGRADE c"],
        ),
    ],
)
def test_a_file_is_rewritten_where_it_must_be(
    files: list[PaimonDataFile], output: int, options: dict[str, str], expected: list[str]
) -> None:
    assert decided(files, output, **options) == expected


def test_files_of_another_format_on_the_output_level_are_rewritten() -> None:
    per_level = rules(file__format="parquet", file__format__per__level="0:avro")
    found = steps(CompactionPick((file("a", (1, 2)),), TOP, ""), per_level, top=TOP, key_types=[INT])
    assert [step.kind for step in found] == [StepKind.MERGE]


def test_files_with_vectors_are_rewritten_one_by_one() -> None:
    files = (file("a", (1, 2), level=TOP), file("b", (3, 4), level=TOP))
    found = steps(CompactionPick(files, TOP, "", one_by_one=True), rules(), top=TOP, key_types=[INT])
    assert [(step.kind, step.files) for step in found] == [(StepKind.MERGE, (each,)) for each in files]
