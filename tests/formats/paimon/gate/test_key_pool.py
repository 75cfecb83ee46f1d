"""A bucket that a proof cannot hold: the gate finds the same in small ranges, and notices what is lost between them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import RUN, MadeBucket, Row, buckets
from tests.formats.paimon.rewrite.test_key_ranges import KINDS, without_updates_before
from tests.formats.paimon.rewrite.test_rewrite import after, full_task, lifting
from tests.formats.paimon.small_ranges import batches_of
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.gate import changes, scan
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.gate.key_pool import KeySide, contested_rows, key_pools
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.rewrite import rewrite as rewriting
from nightkeep.formats.paimon.rewrite.rewrite import rewrite
from nightkeep.model import TaskCost, UnitProof, VerifyLevel
from nightkeep.stages.verify import prove

FREE = TaskCost(0, 0, 0, "")
LEVELS = list(VerifyLevel)


def proof(made: MadeBucket, base: Bucket, candidate: Bucket, level: VerifyLevel) -> UnitProof:
    return replace(prove(gate_of(made.storage), base, candidate, level=level), cost=FREE)


@settings(max_examples=examples(40))
@given(buckets(), st.integers(1, 3))
def test_pools_hold_every_live_row_once_and_whole_keys_in_order(made: MadeBucket, rows: int) -> None:
    bucket = made.bucket()
    sides = [KeySide(bucket, some, made.vectors()) for some in (range(1), range(1, len(bucket.files)))]
    order = scan.row_order(made.schema)
    with batches_of(rows):
        pools = list(key_pools(made.storage, sides, order))
    (whole,) = key_pools(made.storage, sides, order)
    assert all(len({len(side.columns) for side in pool}) == 1 for pool in pools)
    for number, side in enumerate(whole):
        assert pl.concat([pool[number] for pool in pools]).equals(side)
    keys = [{key for side in pool for key in side["_KEY_k"]} for pool in pools]
    keys = [some for some in keys if some]
    assert all(max(before) < min(later) for before, later in itertools.pairwise(keys))


def contested_twin(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Row by row: what shares its key with another row, or is a retract."""
    keys = Counter(row["_KEY_k"] for row in rows.to_dicts())
    return [row for row in rows.to_dicts() if keys[row["_KEY_k"]] > 1 or row["_VALUE_KIND"] in (1, 3)]


@settings(max_examples=examples(60))
@given(buckets(), st.integers(1, 3))
def test_contested_are_rows_of_keys_with_several_and_retracts(made: MadeBucket, rows: int) -> None:
    side, order = KeySide(made.bucket(), range(len(made.bucket().files)), made.vectors()), scan.row_order(made.schema)
    pools = [pool for (pool,) in key_pools(made.storage, [side], order)]
    wanted = [row for pool in pools for row in contested_twin(pool)]
    assert [row for found in contested_rows(made.storage, side, order) for row in found.to_dicts()] == wanted
    with batches_of(rows):
        assert [row for found in contested_rows(made.storage, side, order) for row in found.to_dicts()] == wanted


def test_the_only_row_of_a_key_in_a_run_that_does_not_ascend_is_still_distinguished_from_others() -> None:
    made = MadeBucket()
    made.add(5, [Row(3), Row(1), Row(2), Row(2)])
    made.add(0, [Row(1)])
    side = KeySide(made.bucket(), range(2), {})
    (found,) = contested_rows(made.storage, side, scan.row_order(made.schema))
    assert found["_KEY_k"].to_list() == [1, 1, 2, 2]


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(10))
@given(st.data())
def test_a_proof_is_the_same_in_any_number_of_ranges(kind: str, data: st.DataObject) -> None:
    made, rows = data.draw(buckets(options=KINDS[kind])), data.draw(st.integers(1, 3))
    if kind == "partial update":
        made = without_updates_before(made)
    task = replace(lifting(made, 3), values_needed=bool(KINDS[kind]))
    done = rewrite(made.storage, task, RUN)
    for level in LEVELS:
        pair = (made.bucket(), after(task, done))
        whole = proof(made, *pair, level)
        with batches_of(rows):
            assert proof(made, *pair, level) == whole


def test_a_pool_of_keys_that_do_not_ascend_is_refused() -> None:
    made = MadeBucket()
    made.add(4, [Row(1), Row(5), Row(9)])
    made.add(4, [Row(6), Row(7)])
    with batches_of(1), pytest.raises(CorruptMetadata, match="to ascend, found one that does not"):
        scan.survivors(made.storage, made.bucket(), scan.View.MERGED)


def test_a_key_twice_in_a_file_is_refused_where_a_range_ends_between() -> None:
    made = MadeBucket()
    made.add(0, [Row(1), Row(2), Row(2), Row(3)])
    with batches_of(2), pytest.raises(CorruptMetadata, match="to ascend, found one that does not"):
        scan.survivors(made.storage, made.bucket(), scan.View.MERGED)


Ranges = Iterator[pa.Table]


def loses_the_last(ranges: Ranges) -> Ranges:
    for rows in ranges:
        yield rows.slice(0, max(rows.num_rows - 1, 1)) if rows.num_rows > 1 else rows


def loses_the_first(ranges: Ranges) -> Ranges:
    for number, rows in enumerate(ranges):
        yield rows.slice(1) if number == 1 else rows


def doubles_the_last(ranges: Ranges) -> Ranges:
    border = None
    for rows in ranges:
        yield rows if border is None else pa.concat_tables([border, rows])
        border = rows.slice(max(0, rows.num_rows - 1))


def loses_a_range(ranges: Ranges) -> Ranges:
    return (rows for number, rows in enumerate(ranges) if number != 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("damage", [loses_the_last, loses_the_first, doubles_the_last, loses_a_range])
def test_what_a_rewrite_does_wrong_at_a_border_is_a_mismatch(
    damage: Callable[[Ranges], Ranges], level: VerifyLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MadeBucket()
    made.add(5, [Row(key, "old", key) for key in range(0, 20, 2)])
    made.add(0, [Row(key, "new", 20 + key) for key in range(1, 20, 2)])
    task = full_task(made)
    assert task is not None
    with batches_of(2):
        sound = proof(made, made.bucket(), after(task, rewrite(made.storage, task, RUN)), level)
        real = rewriting.key_ranges
        monkeypatch.setattr(rewriting, "key_ranges", lambda *some: damage(real(*some)))
        wrong = proof(made, made.bucket(), after(task, rewrite(made.storage, task, RUN)), level)
    assert sound.proven
    assert not wrong.proven


@pytest.mark.parametrize("level", LEVELS)
def test_what_the_gate_loses_at_a_border_is_no_proof(level: VerifyLevel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two sides are read in different ranges, so that they do not lose the same rows."""
    made = MadeBucket()
    made.add(5, [Row(key, "old", key) for key in range(0, 20, 2)])
    made.add(0, [Row(key, "new", 20 + key) for key in range(0, 20, 3)])
    task = full_task(made)
    assert task is not None
    with batches_of(2):
        done = rewrite(made.storage, task, RUN)
        monkeypatch.setattr(scan, "contested_rows", lambda *some: (rows.head(-1) for rows in contested_rows(*some)))
        assert not proof(made, made.bucket(), after(task, done), level).proven


def test_changes_of_no_upgraded_file_are_none() -> None:
    made = MadeBucket(dict(KINDS["changelog"]))
    made.add(5, [Row(1)])
    assert list(changes.expected(made.storage, made.bucket(), made.bucket())) == []


def test_without_files_there_is_no_pool() -> None:
    made = MadeBucket()
    with batches_of(1):
        assert not list(key_pools(made.storage, [KeySide(made.bucket(), (), {})], scan.row_order(made.schema)))
