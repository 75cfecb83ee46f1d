"""Stripes of an open ORC file -> Arrow tables of chosen columns. Positions are row ordinals in the file.

A stripe is read whole: Arrow has no smaller unit. The rows of stripes are checked against the footer's counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import orc

from nightkeep.encodings.arrow_limits import LIMITS, beyond_arrow
from nightkeep.encodings.orc_footer import OrcFooter, orc_footer
from nightkeep.encodings.orc_times import MEAN_TIMES, NEAR_1970, has_times, is_before, java_times, with_times
from nightkeep.encodings.orc_zones import UNREADABLE, writer_zone, zone_rules
from nightkeep.encodings.rebase import rebase_zone
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.model.arrow_types import Array, ArrowField

_BEYOND: Final = "out of range for nanosecond resolution"
"""Part of Arrow's message for a timestamp that it cannot hold (arrow/adapters/orc/util.cc)."""
_NO_ZONES: Final = "zoneinfo"
"""Part of its message where the machine has no time zone database, which every timestamp needs."""
_ADVICE: Final = "read and write such files with Java, which knows what their times mean"


class OrcRows:
    """One open file, closed with the last reference. Raises CorruptMetadata naming `subject` if it is not ORC.

    `names` are the top-level columns in order. `starts` has the first row of each stripe, then the number of rows.
    `in_utc`: times without a zone are refused in a file of another zone than UTC, as its readers differ on them.
    """

    def __init__(self, source: pa.NativeFile, *, subject: str, in_utc: bool = False) -> None:
        self._subject, self._source, self._in_utc = subject, source, in_utc
        try:
            self._file = orc.ORCFile(source)
            self.footer: OrcFooter = orc_footer(self._file)
        except (pa.ArrowException, OSError, ValueError) as failure:
            raise CorruptMetadata(subject, "an ORC file", reason_of(failure)) from failure
        self.names = tuple(name for name, _ in self.footer.columns)
        self.fields: list[ArrowField] = list(self._file.schema)
        self.starts = np.cumsum([0, *(stripe.rows for stripe in self.footer.stripes)], dtype=np.int64)
        if self.starts[-1] != self._file.nrows:
            raise CorruptMetadata(
                subject, f"stripes of {self._file.nrows} rows, as its footer states", str(self.starts[-1])
            )

    def read(self, names: Sequence[str], stripes: Sequence[int]) -> pa.Table:
        """Columns of these stripes, in the order of `names`, which are distinct and among the file's."""
        if not stripes:
            return self._file.schema.empty_table().select(list(names))
        return pa.Table.from_batches([self._stripe(names, stripe) for stripe in stripes])

    def batches(self, names: Sequence[str], stripes: Sequence[int], *, rows: int) -> Iterator[pa.RecordBatch]:
        """As `read`, at most `rows` rows at a time."""
        for stripe in stripes:
            batch = self._stripe(names, stripe)
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def _stripe(self, names: Sequence[str], stripe: int) -> pa.RecordBatch:
        with self._decoding():
            # Without a column Arrow would not count rows.
            batch = self._file.read_stripe(stripe, list(names or self.names[:1]))
        # Arrow finds columns by paths: "a.b" may be a field b of a struct a.
        if sorted(batch.schema.names) != sorted(names or self.names[:1]):
            raise RefusedTable(
                self._subject,
                f"columns {', '.join(batch.schema.names)} for the names {', '.join(names)}",
                "rename columns that have a dot in their names",
            )
        expected = int(self.starts[stripe + 1] - self.starts[stripe])
        if batch.num_rows != expected:
            raise CorruptMetadata(
                f"{self._subject} stripe {stripe}", f"{expected} rows, as its footer states", str(batch.num_rows)
            )
        return self._as_java(batch.select(list(names)), stripe)

    def _as_java(self, batch: pa.RecordBatch, stripe: int) -> pa.RecordBatch:
        """The stripe's rows with times as Java's readers show them. Raises RefusedTable where that is not known."""
        if not any(has_times(field.type) for field in batch.schema):
            return batch
        try:
            name = writer_zone(self._source, self.footer.stripes[stripe], self.footer.codec)
            rules = None if name is None or self._in_utc else zone_rules(name)
        except UNREADABLE as failure:
            raise RefusedTable(
                self._subject, f"times of an unknown time zone: {reason_of(failure)}", _ADVICE
            ) from failure
        if name is not None and self._in_utc:
            raise RefusedTable(self._subject, f"times of an ORC file of the time zone {name}", _ADVICE)
        if name is None or rules is None:
            return batch
        zone = rebase_zone(name)
        # Java and the machine may know other histories of a zone: Java's first offset is in the table of Spark.
        is_sure = zone is not None and zone.offset - zone.shift == int(rules.offsets[0]) * 1_000_000

        def as_java(column: Array) -> Array:
            if is_before(column, MEAN_TIMES if is_sure else -NEAR_1970):
                feature = f"times before {1902 if is_sure else 1970} in an ORC file of the time zone {name}"
                raise RefusedTable(self._subject, feature, _ADVICE)
            return java_times(column, rules)

        columns = [with_times(column, as_java) for column in batch.columns]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except LIMITS as failure:
            raise beyond_arrow(self._subject, failure) from failure
        except (pa.ArrowException, OSError) as failure:
            if _BEYOND in str(failure):
                raise RefusedTable(
                    self._subject,
                    "times outside the years 1678 to 2261 in an ORC file are not handled",
                    "Arrow reads times of ORC files as nanoseconds; keep such times in Parquet files",
                ) from failure
            if _NO_ZONES in str(failure):
                raise RefusedTable(
                    self._subject,
                    "times of an ORC file on a machine without time zones",
                    "install the system's time zone database (tzdata), or set TZDIR",
                ) from failure
            raise CorruptMetadata(self._subject, "stripes of an ORC file", reason_of(failure)) from failure
