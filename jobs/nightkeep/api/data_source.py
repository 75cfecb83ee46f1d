"""Spark's Python data source `nightkeep`: a table's splits as partitions, its rows as Arrow batches.

`spark.dataSource.register(nightkeep.DataSource)`, then `spark.read.format("nightkeep").load("paimon:/warehouse/t")`.
Each partition has all metadata that it needs. Executors need the package, and reach the files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource as SparkDataSource
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from nightkeep.api.call_context import find_context
from nightkeep.api.reading import plan_changes, reading_of
from nightkeep.errors import UsageError
from nightkeep.model import Address
from nightkeep.protocol import Unit
from nightkeep.protocol.reading import FileReads
from nightkeep.reading.changelog import PlannedChangelog
from nightkeep.reading.changes import PlannedDiff
from nightkeep.reading.plan import Planned, plan_read
from nightkeep.reading.request import ChangesSince, ReadRequest, request_of, start_of
from nightkeep.reading.spark_types import arrow_for_spark, as_spark_takes, spark_schema
from nightkeep.reading.splits import ReadSplit, ShownRows, read_split
from nightkeep.sql_text.rows.condition import Test

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

OPTIONS: Final = ("path", "columns", "where", "version", "tag", "view", "incremental", "since", "policy", "pushdown")
_PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The worker that Spark starts to push filters down, where spark.sql.python.filterPushdown.enabled is on."""


class DataSource(SparkDataSource):
    """Reads a Paimon, Delta or Iceberg table. The path is its address, or its name in a policy file.

    Options are those of `nightkeep.read`; others are refused. Columns are left out by the option `columns` alone, as
    Spark's API has no way to do it. With the option `pushdown` and spark.sql.python.filterPushdown.enabled, Spark's
    conditions leave out files as `where` does. Such a DataFrame is for one query: Spark 4.1 shows the rows that one
    query's filters leave to every other query of the same DataFrame. Changes come in no order.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(self._given.keys() - set(OPTIONS))
        if unknown:
            raise UsageError(f"option {', '.join(unknown)}: expected some of {', '.join(OPTIONS)}")
        if "path" not in self._given:
            raise UsageError("path: expected the address of a table, found none")

    @classmethod
    def name(cls) -> str:
        return "nightkeep"

    def schema(self) -> StructType:
        return spark_schema(self._shown())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Spark refuses a reader that has `pushFilters` unless filters are pushed down."""
        pushes = self._given.get("pushdown", "false").lower() == "true" and self._start() is None
        return _PushingReader(self) if pushes and _is_pushing() else _PlainReader(self)

    def partitions_of(self, tests: Sequence[Test]) -> Sequence[InputPartition]:
        """One for each split of the newest version, or of the version that the options name."""
        if self._start() is not None:
            changes = self._changes()
            shown = self._spark_columns(changes.schema)
            return [_ChangesPartition(part, shown) for part in changes.divided()]
        planned = self._plan(tests)
        columns = self._spark_columns(planned.shown.schema)
        # Spark reads no partition as one without rows.
        splits = planned.splits or (ReadSplit(()),)
        return [_SplitPartition(planned.files, split, planned.shown, columns) for split in splits]

    def tests_of(self, filters: Sequence[Filter]) -> tuple[Sequence[Test], Sequence[Filter]]:
        from nightkeep.reading.pushed_filters import pushed_tests  # noqa: PLC0415 -- Spark 4.0 has no filters

        return pushed_tests(filters, self._plan(()).shown.schema)

    def _shown(self) -> pa.Schema:
        return self._spark_columns(self._plan(()).shown.schema if self._start() is None else self._changes().schema)

    def _spark_columns(self, columns: pa.Schema) -> pa.Schema:
        return arrow_for_spark(columns, table=self._given["path"])

    def _address(self) -> Address:
        return find_context(self._given.get("policy"), None).chosen(self._given["path"]).address

    def _plan(self, tests: Sequence[Test]) -> Planned[Unit]:
        address = self._address()
        return plan_read(address.name, address.format, reading_of(address), self._request(), also=tests)

    def _changes(self) -> PlannedDiff | PlannedChangelog:
        address, start = self._address(), self._start()
        assert start is not None
        return plan_changes(address, reading_of(address), self._request(), start)

    def _start(self) -> ChangesSince | None:
        return start_of(self._given.get("incremental"), self._number("since"))

    def _request(self) -> ReadRequest:
        given, number = self._given, self._number("version")
        return request_of(given.get("columns"), given.get("where"), number, given.get("tag"), given.get("view"))

    def _number(self, option: str) -> int | None:
        text = self._given.get(option)
        if text is not None and not text.removeprefix("-").isdecimal():
            raise UsageError(f"{option}: expected a whole number, found {text!r}")
        return None if text is None else int(text)


class _SplitPartition(InputPartition):
    """A split, and what reads it."""

    def __init__(self, files: FileReads[Unit], split: ReadSplit[Unit], shown: ShownRows, columns: pa.Schema) -> None:
        self.files, self.split, self.shown, self.columns = files, split, shown, columns

    def rows(self) -> Iterator[pa.RecordBatch]:
        for batch in read_split(self.files, self.split, self.shown):
            yield as_spark_takes(batch, self.columns)


class _ChangesPartition(InputPartition):
    """Changes between two versions, or a part of them."""

    def __init__(self, changes: PlannedDiff | PlannedChangelog, columns: pa.Schema) -> None:
        self.changes, self.columns = changes, columns

    def rows(self) -> Iterator[pa.RecordBatch]:
        for batch in self.changes.batches():
            yield as_spark_takes(batch, self.columns)


class _PlainReader(DataSourceReader):
    def __init__(self, source: DataSource) -> None:
        self._source = source

    def partitions(self) -> Sequence[InputPartition]:
        return self._source.partitions_of(())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows(partition)


class _PushingReader(DataSourceReader):
    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._tests: Sequence[Test] = ()

    def pushFilters(self, filters: list[Filter]) -> Sequence[Filter]:
        """The filters that Spark has to apply itself."""
        self._tests, others = self._source.tests_of(filters)
        return others

    def partitions(self) -> Sequence[InputPartition]:
        return self._source.partitions_of(self._tests)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows(partition)


def _rows(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, _SplitPartition | _ChangesPartition)
    return partition.rows()


def _is_pushing() -> bool:
    """Whether this process is the worker that pushes filters down, forked from a daemon or run as a program."""
    program = getattr(sys.modules["__main__"], "__spec__", None)
    return _PUSHING in sys.modules or getattr(program, "name", None) == _PUSHING
