"""Adds of a checkpoint as columns: the version is the one that replay of every add, one by one, gives."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.delta.hand_log import Action, HandLog, add, remove, vector
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.metadata import checkpoints
from nightkeep.formats.delta.metadata.add_columns import AddColumns
from nightkeep.formats.delta.metadata.live_files import DeltaFiles
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.metadata.struct_stats import row_count, row_counts
from nightkeep.model.file_columns import UNKNOWN, columns_of, name_ranks, names_of

CHECKPOINTS = sorted((Path(__file__).parents[3] / "golden" / "delta").rglob("*.checkpoint*.parquet"))
PATHS = ["a", "b", "p=a/c", "p=a/c%20d", "p=a/c d", "a%20b", "z%2e", "e\u00e9", "\U00020000", "dir//f", "../f", "x?y"]
STATS = [
    '{"numRecords":10}',
    "",
    None,
    "{}",
    '{"numRecords":null}',
    '{ "numRecords" : 3 }',
    '{"a":{"numRecords":4}}',
    '{"numRecords":0}',
    '{"numRecords":1,"numRecords":20}',
    '{"a":NaN,"numRecords":20}',
    '{"a":\n1}',
    "{",
    "[]",
    '{"numRecords":-1}',
    '{"numRecords":1.0}',
    '{"numRecords":"1"}',
    "{}{}",
    '{"a":"\\ud800"}',
    '{"numRecord\\u0073":5}',
]

plain_adds = st.builds(
    lambda path, p, more: add(path, p, **more),
    st.sampled_from(PATHS[:9]),
    st.sampled_from(["a", "", None, "b", "null"]),
    st.fixed_dictionaries(
        {"stats": st.sampled_from(STATS[:9])},
        optional={
            "size": st.integers(0, 1 << 40),
            "tags": st.just({"k": "v"}),
            "deletionVector": st.sampled_from([None, vector("v"), vector("w", 0), vector("w", 9)]),
        },
    ),
)
odd_adds = st.builds(
    lambda path, stats, size, gone: add(path, stats=stats, size=size, deletionVector=gone),
    st.sampled_from(PATHS),
    st.sampled_from(STATS),
    st.sampled_from([100, -1]),
    st.sampled_from([None, vector("v", 99), {**vector("v"), "storageType": "x"}, {**vector("v"), "storageType": "i"}]),
)
commits = st.lists(
    st.lists(
        st.one_of(plain_adds, st.sampled_from(PATHS[:9]).map(remove), st.just(remove("a", deletionVector=vector("v")))),
        max_size=3,
        unique_by=lambda action: next((kind, body["path"]) for kind, body in action.items()),
    ),
    max_size=3,
)


def version(
    held: Sequence[Action], after: Sequence[Sequence[Action]], patch: pytest.MonkeyPatch, *, columns: bool
) -> Any:
    """The version by columns, or by every add in turn; or the kind of error."""
    if not columns:
        patch.setattr(checkpoints, "add_columns", lambda rows, stats: None)
    with TemporaryDirectory() as folder:
        log = HandLog(Path(folder))
        log.commit(0, *log.head)
        log.single(0, [*log.head, *held])
        for number, actions in enumerate(after, start=1):
            log.commit(number, *actions)
        try:
            return log.load()
        except (CorruptMetadata, RefusedTable) as failure:
            return type(failure)


def alike(one: Any, other: Any) -> bool:
    if not isinstance(one, DeltaSnapshot) or not isinstance(other, DeltaSnapshot):
        return one is other
    raws = [[file.raw for unit in each.units for file in unit.files] for each in (one, other)]
    return one.units == other.units and one.identity == other.identity and raws[0] == raws[1]


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(plain_adds, max_size=7, unique_by=lambda action: action["add"]["path"]), commits)
def test_a_version_is_that_of_its_adds_one_by_one(held: list[Action], after: list[list[Action]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = version(held, after, patch, columns=True)
        assert alike(fast, version(held, after, patch, columns=False))


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(plain_adds, max_size=3), odd_adds)
def test_what_is_wrong_in_a_checkpoint_is_found_in_columns_too(held: list[Action], odd: Action) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = version([*held, odd], [], patch, columns=True)
        assert alike(fast, version([*held, odd], [], patch, columns=False))


@pytest.mark.parametrize("text", STATS)
def test_rows_are_those_of_one_text_or_need_a_closer_look(text: str | None) -> None:
    found = row_counts(pa.array(['{"numRecords":7}', text, None], pa.string()))
    if found is not None:
        rows = row_count(text) if text else None
        assert found.tolist() == [7, UNKNOWN if rows is None else rows, UNKNOWN]


def test_deep_statistics_need_a_closer_look() -> None:
    assert row_counts(pa.array(['{"a":' + "[" * 5000 + "]" * 5000 + "}"])) is None


def test_files_in_columns_are_a_sequence_of_files(tmp_path: Path) -> None:
    log = HandLog(tmp_path)
    log.commit(0, *log.head)
    held = [add(path, deletionVector=gone) for path, gone in zip("edcba", [None, vector("v", 3)] * 3, strict=False)]
    log.single(0, [*log.head, *held])
    log.commit(1, add("bb"), remove("c"))
    files = log.load().units[0].files
    assert isinstance(files, DeltaFiles) and [file.path for file in files] == ["a", "b", "bb", "d", "e"]
    objects = tuple(files)
    assert files == objects and hash(files) == hash(objects) and repr(files) == repr(objects)
    assert pickle.loads(pickle.dumps(files)) == objects and type(pickle.loads(pickle.dumps(files))) is tuple
    assert names_of(files) == names_of(objects) and name_ranks(files).tolist() == name_ranks(objects).tolist()
    some = files.take(np.asarray([3, 0]))
    for found, expected in ((files, objects), (some, (objects[3], objects[0]))):
        pairs = zip(_numbers(found), _numbers(expected), strict=True)
        assert tuple(found) == expected and all(one == other for one, other in pairs)
    assert files[1:3] == objects[1:3] and files[-1] == objects[-1] and files != objects[1:]


def _numbers(files: Any) -> list[list[int]]:
    columns = columns_of(files)
    return [each.tolist() for each in (columns.bytes, columns.rows, columns.deleted_rows, columns.deletes)]


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.parents[2].name)
def test_checkpoints_of_real_writers_are_columns(path: Path) -> None:
    items = [*checkpoints._file_actions(path.name, path.read_bytes(), ("add",))]
    assert all(isinstance(item, AddColumns) for item in items)
