"""What Spark 3.5 lacks of Spark 4, by means that both have: frames of Arrow tables, rows as Arrow, groups in Arrow.

Nothing else in the package asks for the release of Spark, but for the Python data source, which 3.5 does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

IS_4: Final = int(pyspark.__version__.split(".")[0]) >= 4
VARIANT: Final[tuple[type[T.DataType], ...]] = tuple(filter(None, [getattr(T, "VariantType", None)]))
"""The type of variants, for isinstance; empty in Spark 3.5, whose tables cannot have one."""


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A frame with the rows of a table, in no order. Nulls and types are the table's."""
    return spark.createDataFrame(table) if IS_4 else _sent_frame(spark, table)


def arrow_of(frame: DataFrame) -> pa.Table:
    """The rows of a frame, collected on the driver."""
    return frame.toArrow() if IS_4 else _collected(frame)


def metadata_column(frame: DataFrame, name: str) -> Column:
    """A hidden column of a source of files, such as `_metadata`, also where the rows have a column of that name."""
    if IS_4:
        return frame.metadataColumn(name)
    private: Any = frame
    return Column(private._jdf.metadataColumn(name))


def make_active(spark: SparkSession) -> None:
    """Make a session the active one of this thread, in Python and in the JVM."""
    private: Any = spark
    SparkSession._activeSession = spark
    jvm = private._get_j_spark_session_class(private._jvm) if IS_4 else private._jvm.SparkSession
    jvm.setActiveSession(private._jsparkSession)


def apply_in_parts(frame: DataFrame, part: str, work: Callable[[pa.Table], pa.Table], schema: str) -> DataFrame:
    """Call `work` once for the rows of each value of `part`, an integer column without nulls; the rows it returns.

    As groupBy(part).applyInArrow of Spark 4, in a frame whose partitions have whole parts: sorted by it, one part at a
    time is in memory.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _parts(batches, part):
            yield from work(rows).combine_chunks().to_batches()

    return frame.sortWithinPartitions(part).mapInArrow(run, schema)


def _parts(batches: Iterable[pa.RecordBatch], part: str) -> Iterator[pa.Table]:
    """Tables of equal `part`, of batches sorted by it."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        for piece in _pieces(batch, part):
            if held and held[-1].column(part)[0] != piece.column(part)[0]:
                yield pa.Table.from_batches(held)
                held = []
            held.append(piece)
    if held:
        yield pa.Table.from_batches(held)


def _pieces(batch: pa.RecordBatch, part: str) -> Iterator[pa.RecordBatch]:
    start = 0
    for count in pc.value_counts(batch.column(part)).field("counts").to_numpy():
        yield batch.slice(start, int(count))
        start += int(count)


def _sent_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows travel with the function that returns them: Spark 3.5 makes frames of pandas alone, which has no nulls
    in whole numbers."""
    tasks = max(1, min(spark.sparkContext.defaultParallelism, table.num_rows))
    size = -(-max(1, table.num_rows) // tasks)
    streams = [_stream(table.slice(start, size)) for start in range(0, max(1, table.num_rows), size)]
    numbers = spark.range(0, len(streams), 1, len(streams))
    return numbers.mapInArrow(_sent(streams), from_arrow_schema(table.schema))


def _sent(streams: list[bytes]) -> Any:
    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_numpy():
                yield from pa.ipc.open_stream(streams[int(number)])

    return rows


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _collected(frame: DataFrame) -> pa.Table:
    private: Any = frame
    return pa.Table.from_batches(private._collect_as_arrow(), schema=to_arrow_schema(frame.schema))
