"""Sources -> pieces -> parts: through Spark's shuffle as in one process."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, NightkeepError
from nightkeep.spark.exchange import SparkExchange
from nightkeep.tasks import Exchange, Piece, inline_exchange

# Workers cannot import tests: functions of this module travel with their code.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

Row = tuple[int, int, int]
"""part, place, value"""


def scattered(rows: tuple[Row, ...]) -> Iterator[Piece]:
    for part, place, value in rows:
        yield Piece(part, place, pa.record_batch({"value": pa.array([value], pa.int8())}))


def gathered(part: int, pieces: Iterator[Piece]) -> tuple[int, list[Row]]:
    return part, [(piece.part, piece.place, value) for piece in pieces for value in piece.rows["value"].to_pylist()]


def twin(sources: list[tuple[Row, ...]], parts: int) -> list[tuple[int, list[Row]]]:
    every = sorted(row for source in sources for row in source)
    return [(part, [row for row in every if row[0] == part]) for part in range(parts)]


def unordered_ties(found: list[tuple[int, list[Row]]]) -> list[tuple[int, list[Row]]]:
    assert all([row[1] for row in rows] == sorted(row[1] for row in rows) for _, rows in found)
    return [(part, sorted(rows)) for part, rows in found]


rows_of = st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5), st.integers(-9, 9)), max_size=8).map(tuple)


@settings(deadline=None)
@given(st.lists(rows_of, min_size=1, max_size=5))
def test_inline_gives_each_part_its_pieces_by_place(sources: list[tuple[Row, ...]]) -> None:
    found = inline_exchange(scattered, gathered, sources, parts=4, label="move")
    assert unordered_ties(found) == twin(sources, 4)


@settings(max_examples=examples(2), deadline=None, phases=[Phase.generate])
@given(st.lists(rows_of, min_size=1, max_size=3))
def test_spark_gives_each_part_its_pieces_by_place(spark: SparkSession, sources: list[tuple[Row, ...]]) -> None:
    found = SparkExchange(spark)(scattered, gathered, sources, parts=4, label="move")
    assert unordered_ties(found) == twin(sources, 4)


def test_many_pieces_from_many_sources(spark: SparkSession) -> None:
    sources = [tuple((n % 7, 10 - n % 11, n % 100) for n in range(start, start + 60)) for start in range(0, 180, 60)]
    found = SparkExchange(spark)(scattered, gathered, sources, parts=7, label="move")
    assert unordered_ties(found) == twin(sources, 7)


def test_columns_that_spark_has_no_type_for_travel_as_they_are(spark: SparkSession) -> None:
    rows = pa.record_batch(
        {
            "ns": pa.array([1, None], pa.timestamp("ns")),
            "wide": pa.array([2**64 - 1, 0], pa.uint64()),
            "nested": pa.array([{"a": [1]}, None], pa.struct([("a", pa.list_(pa.int8()))])),
        }
    )

    def gather(part: int, pieces: Iterator[Piece]) -> list[pa.RecordBatch]:
        return [piece.rows for piece in pieces]

    assert SparkExchange(spark)(lambda _: iter([Piece(0, 0, rows)]), gather, [0], parts=1, label="move") == [[rows]]


def test_no_source_is_read_twice_and_every_part_is_a_task(spark: SparkSession, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def scatter(source: int) -> Iterator[Piece]:
        with open(log, "a") as file:
            file.write(f"{source}\n")
        yield from scattered(((source % 2, 0, source),))

    def gather(part: int, pieces: Iterator[Piece]) -> int:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None
        assert sum(1 for _ in pieces) == 3
        return context.taskAttemptId()

    tasks = SparkExchange(spark)(scatter, gather, range(6), parts=2, label="move")
    assert len(set(tasks)) == 2
    assert sorted(Path(log).read_text().split()) == list("012345")


def in_a_source(source: int) -> Iterator[Piece]:
    yield from scattered(((1, 0, source),))
    raise CorruptMetadata(f"source {source}", "rows", "none")


def in_a_part(part: int, pieces: Iterator[Piece]) -> object:
    raise CorruptMetadata(f"part {part}", "rows", "none")


def one_row(source: int) -> Iterator[Piece]:
    return scattered(((0, 0, source),))


@pytest.mark.parametrize(("scatter", "gather"), [(in_a_source, gathered), (one_row, in_a_part)])
@pytest.mark.parametrize("through_spark", [True, False])
def test_a_failure_of_ours_is_raised_as_it_was(
    spark: SparkSession, scatter: Callable[..., Iterator[Piece]], gather: Callable[..., object], *, through_spark: bool
) -> None:
    exchange: Exchange = SparkExchange(spark) if through_spark else inline_exchange
    with pytest.raises(NightkeepError) as raised:
        exchange(scatter, gather, [0, 1], parts=2, label="fail")
    assert str(raised.value) in {
        f"{kind} {n}: expected rows, found none" for kind in ("source", "part") for n in (0, 1)
    }


def test_any_other_failure_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    marker = str(tmp_path / "tried")

    def gather(part: int, pieces: Iterator[Piece]) -> int:
        rows = sum(piece.rows.num_rows for piece in pieces)
        if not os.path.exists(marker):
            open(marker, "x").close()
            raise RuntimeError("a lost connection")
        return rows

    assert SparkExchange(spark)(one_row, gather, [0, 1], parts=2, label="flaky") == [2, 0]


@pytest.mark.parametrize("part", [-1, 2])
def test_a_part_that_does_not_exist_is_no_modulo(spark: SparkSession, part: int) -> None:
    def scatter(source: int) -> Iterator[Piece]:
        return scattered(((part, 0, 0),))

    with pytest.raises(ValueError, match=f"part {part}, expected one of 2"):
        inline_exchange(scatter, gathered, [0], parts=2, label="move")
    with pytest.raises(PythonException, match=f"part {part}, expected one of 2"):
        SparkExchange(spark)(scatter, gathered, [0], parts=2, label="move")


def test_the_session_is_left_as_it_was(spark: SparkSession) -> None:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    assert SparkExchange(spark)(one_row, gathered, [7], parts=1, label="move") == [(0, [(0, 0, 7)])]
    assert spark.conf.get(name) == before
