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
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of

_BEYOND: Final = "out of range for nanosecond resolution"
"""Part of Arrow's message for a timestamp that it cannot hold (arrow/adapters/orc/util.cc)."""
_NO_ZONES: Final = "zoneinfo"
"""Part of its message where the machine has no time zone database, which every timestamp needs."""


class OrcRows:
    """One open file, closed with the last reference. Raises CorruptMetadata naming `subject` if it is not ORC.

    `names` are the top-level columns in order. `starts` has the first row of each stripe, then the number of rows.
    """

    def __init__(self, source: pa.NativeFile, *, subject: str) -> None:
        self._subject = subject
        try:
            self._file = orc.ORCFile(source)
            self.footer: OrcFooter = orc_footer(self._file)
        except (pa.ArrowException, OSError, ValueError) as failure:
            raise CorruptMetadata(subject, "an ORC file", reason_of(failure)) from failure
        self.names = tuple(name for name, _ in self.footer.columns)
        self.starts = np.cumsum([0, *(stripe.rows for stripe in self.footer.stripes)], dtype=np.int64)
        if self.starts[-1] != self._file.nrows:
            raise CorruptMetadata(
                subject, f"stripes of {self._file.nrows} rows, as its footer says", str(self.starts[-1])
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
                f"{self._subject} stripe {stripe}", f"{expected} rows, as its footer says", str(batch.num_rows)
            )
        return batch.select(list(names))

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
                    self._subject, "times of an ORC file on a machine without time zones",
                    "install the system's time zone database (tzdata), or set TZDIR",
                ) from failure  # fmt: skip
            raise CorruptMetadata(self._subject, "stripes of an ORC file", reason_of(failure)) from failure
