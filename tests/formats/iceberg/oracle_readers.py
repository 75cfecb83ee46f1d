"""One table as four readers see it: Iceberg Java, iceberg-spark, DuckDB and pyiceberg. They are to agree row by row."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg.oracle_filters import Condition

LINEAGE = ("_row_id", "_last_updated_sequence_number")


@dataclass(frozen=True)
class Readers:
    java: IcebergJava
    spark: IcebergSpark
    lakes: Lakes
    table: Table

    def all_see(self, *, lineage: bool = False, duckdb: bool = True) -> Rows:
        """The whole table, by every reader that can: pyiceberg where no equality delete is live. Lineage is known to
        Spark and Java alone."""
        rows = self.java.read(self.table)
        if duckdb and not self.duckdb_fails():
            assert self.lakes.duckdb_read_iceberg(self.table.metadata) == rows
        if not self.has_equality_deletes():
            assert pyiceberg_read(self.table.metadata) == rows
        columns = (*rows.columns, *LINEAGE) if lineage else rows.columns
        shown = self.spark.read(self.table, columns=columns)
        assert shown == (self.java.read(self.table, columns=columns) if lineage else rows)
        return shown

    def duckdb_fails(self) -> bool:
        """1.5.5 may, on equality deletes where a partition is null or beside files of another spec; and it may take a
        vector for another one of the same Puffin file where that has vectors of files of two specs, as Spark's have
        once the spec has changed."""
        live = [entry for entry in self.java.entries(self.table) if entry["status"] != 2]
        odd = len({entry["spec_id"] for entry in live}) > 1 or any(None in entry["partition"] for entry in live)
        specs: dict[str, set[int]] = {}
        for entry in live:
            if entry.get("content_offset") is not None:
                specs.setdefault(entry["file_path"], set()).add(entry["spec_id"])
        return (odd and self.has_equality_deletes()) or any(len(each) > 1 for each in specs.values())

    def duckdb_agrees(self) -> bool:
        with suppress(EngineError):
            return self.lakes.duckdb_read_iceberg(self.table.metadata) == self.java.read(self.table)
        return False

    def has_equality_deletes(self) -> bool:
        return any(entry["content"] == 2 and entry["status"] != 2 for entry in self.java.entries(self.table))

    def expected(self, conditions: Sequence[Condition]) -> list[Rows]:
        """By one query that skips nothing."""
        flags = [f"({each.sql(timestamp='TIMESTAMP')}) AS f{n}" for n, each in enumerate(conditions)]
        found = self.spark.read(self.table, columns=("*", *flags))
        width = len(found.columns) - len(conditions)
        head = (found.columns[:width], found.types[:width])
        kept = [tuple(row[:width] for row in found.rows if row[width + n]) for n in range(len(conditions))]
        return [Rows(*head, rows).ordered() for rows in kept]

    def all_find(self, conditions: Sequence[Condition], expected: Sequence[Rows]) -> None:
        """Files are skipped by what their entries say of them."""
        duckdb = [each.sql(timestamp="TIMESTAMPTZ") for each in conditions]
        by_duckdb = self.lakes.duckdb_find_iceberg(self.table.metadata, duckdb)
        by_spark = self._spark_finds(conditions)
        for n, (condition, rows) in enumerate(zip(conditions, expected, strict=True)):
            assert by_spark[n] == rows, condition
            assert by_duckdb[n] == rows, condition
            assert self.java.read(self.table, where=condition.java()) == rows, condition
            assert pyiceberg_read(self.table.metadata, where=condition.pyiceberg()) == rows, condition

    def _spark_finds(self, conditions: Sequence[Condition]) -> list[Rows]:
        """In one statement, of which each part is a scan of its own."""
        parts = (
            f"SELECT {n} AS found_by, * FROM {self.table.sql} WHERE {each.sql(timestamp='TIMESTAMP')}"
            for n, each in enumerate(conditions)
        )
        return self.spark.sql(" UNION ALL ".join(parts)).parts(len(conditions))
