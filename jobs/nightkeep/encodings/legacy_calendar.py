"""Footer of a Parquet file -> which of its dates and times are of the hybrid calendar, and those as Spark reads them.

Spark 2, and Spark 3 and later in the mode LEGACY, write the hybrid Julian-Gregorian calendar; a key in the footer, or
its version, is what identifies them (DataSourceUtils.scala: datetimeRebaseSpec, int96RebaseSpec). A file without
Spark's version is of no old calendar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nightkeep.encodings.rebase import CUTOVER_DAY, is_in_table, may_differ, rebase_zone, rebased_days, rebased_micros
from nightkeep.errors import RefusedTable
from nightkeep.model.arrow_types import Array, ChunkedArray, has_type

_VERSION: Final = b"org.apache.spark.version"
_ZONE: Final = b"org.apache.spark.timeZone"
_LEGACY_DATETIME: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"
_FIRST: Final = b"3.0.0"
_FIRST_OF_INT96: Final = b"3.1.0"


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """The old calendar of the file `subject`. `datetime`: of its dates, and of its times in 64 bits; `int96`: of those
    in 96 bits. `zone` is the time zone of its writer, None if the file does not name it."""

    subject: str
    datetime: bool
    int96: bool
    zone: str | None

    def days(self, column: Array) -> Array:
        """Dates (date32) as Spark reads them."""
        return rebased_days(column) if self.datetime else column

    def micros(self, column: Array, *, is_int96: bool = False) -> Array:
        """Timestamps in microseconds as Spark reads them. Raises RefusedTable for one that moves by an unknown zone."""
        is_old = self.int96 if is_int96 else self.datetime
        if not is_old or not may_differ(column):
            return column
        zone = None if self.zone is None else rebase_zone(self.zone)
        if zone is None:
            found = "names no time zone" if self.zone is None else f"names the unknown time zone {self.zone}"
            feature = f"times before 1900 in the Julian calendar, in a file that {found}"
            raise RefusedTable(self.subject, feature, _ADVICE)
        if not is_in_table(column, zone):
            feature = f"times before year 1 in the Julian calendar and the time zone {self.zone}"
            raise RefusedTable(self.subject, feature, _ADVICE)
        return rebased_micros(column, zone)


def require_one_calendar(calendar: LegacyCalendar | None, array: Array | ChunkedArray, column: str) -> None:
    """For formats whose engines do not heed the marks, while Spark's reader does: they show different days and times.

    Raises RefusedTable for a column with values that the old calendar moves, and for nested columns with any."""
    if calendar is None:
        return
    kind = array.type
    if pa.types.is_date32(kind):
        old = pc.min(array.cast(pa.int32())).as_py()
        moves = calendar.datetime and old is not None and old < CUTOVER_DAY
    elif pa.types.is_timestamp(kind):
        moves = may_differ(array.cast(pa.timestamp("us", kind.tz), safe=False))
    else:
        moves = _has_times(kind)
    if moves:
        feature = f"column {column}: days or times of the Julian calendar, which only Spark moves when it reads them"
        raise RefusedTable(calendar.subject, feature, _ADVICE)


def _has_times(kind: pa.DataType) -> bool:
    """Whether a value of the type has a date or a timestamp in it."""
    return has_type(kind, lambda each: pa.types.is_date32(each) or pa.types.is_timestamp(each))


_ADVICE: Final = "rewrite such files with the engine that wrote them, which knows what their times mean"


def legacy_calendar(footer: pq.FileMetaData, *, subject: str) -> LegacyCalendar | None:
    """None for a file whose dates and times are all of the Gregorian calendar."""
    marks: Mapping[bytes, bytes] = footer.metadata or {}
    version = marks.get(_VERSION)
    if version is None:
        return None
    # Spark compares versions as texts.
    datetime, int96 = version < _FIRST or _LEGACY_DATETIME in marks, version < _FIRST_OF_INT96 or _LEGACY_INT96 in marks
    if not datetime and not int96:
        return None
    zone = marks.get(_ZONE)
    return LegacyCalendar(subject, datetime, int96, None if zone is None else zone.decode("utf-8", "replace"))
