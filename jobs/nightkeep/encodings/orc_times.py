"""Times that Arrow reads of an ORC file -> those that Java's reader shows.

A file holds instants, and the time zone of its writer; readers show the wall time there. A time before 1970 with a
fraction of a millisecond or more is stored a second late. Java takes the second off where the stored instant is before
1970 (TreeReaderFactory.TimestampTreeReader), the reader in C++ that Arrow uses where the wall time is
(ColumnReader.cc), which is another in every zone but UTC. So the two differ between 1970 and the zone's offset from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.encodings.nested_values import rebuilt
from nightkeep.errors import RefusedTable
from nightkeep.model.arrow_types import Array, ChunkedArray, Datum, ListArray, has_type

Integers = npt.NDArray[np.int64]

_NANOS: Final = 1_000_000_000
_LATE: Final = 999_999
"""Nanoseconds of a second up to which neither reader takes a second off."""
MEAN_TIMES: Final = -2_145_916_800
"""1902-01-01: before, Java and C++ differ in the local mean times of some zones."""
NEAR_1970: Final = 2 * 86_400
"""Seconds around 1970 beyond which a wall time and its instant are on the same side of it, in every zone."""
_MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ZoneRules:
    """`starts` are the ascending instants at which a zone's offset from UTC changes, in seconds; `offsets` are the ones
    before, between and after them."""

    starts: Integers
    offsets: Integers

    def instants(self, walls: Integers) -> Integers:
        """The instant of each wall time; the later one where there are two."""
        local = self.starts + self.offsets[1:]
        return walls - self.offsets[np.searchsorted(local, walls, side="right")]


def is_before(column: Array, seconds: int) -> bool:
    """Whether any of these times (timestamps in nanoseconds) is before a wall time."""
    least = pc.min(column.cast(pa.int64())).as_py()
    return least is not None and least < seconds * _NANOS


def java_times(column: Array, rules: ZoneRules) -> Array:
    """Timestamps in nanoseconds without a zone, written by a Java in the zone of these rules."""
    if not is_before(column, NEAR_1970):
        return column
    nulls = np.asarray(column.is_null()) if column.null_count else None
    numbers = column.cast(pa.int64())
    filled: Array = numbers if nulls is None else pc.if_else(numbers.is_valid(), numbers, 0)
    values: Integers = filled.to_numpy(zero_copy_only=False)
    seconds, nanos = values // _NANOS, values % _NANOS
    is_late = nanos > _LATE
    # What C++ had before it took a second off: a late time cannot be in the last second before 1970 then.
    walls = np.where(is_late & (seconds < -1), seconds + 1, seconds)
    millis = rules.instants(walls) * 1000 + nanos // _MICROS
    walls = np.where(np.abs(seconds) < NEAR_1970, walls - (is_late & (millis < 0)), seconds)
    return pa.array(walls * _NANOS + nanos, pa.int64(), mask=nulls).cast(column.type)


def with_times(array: Array, changed: Callable[[Array], Array]) -> Array:
    """The values with every timestamp that has no zone `changed`, within structs, lists and maps too."""
    kind: Any = array.type
    if pa.types.is_timestamp(kind):
        return array if kind.tz is not None else changed(array)
    if not pa.types.is_nested(kind) or not has_times(kind):
        return array
    if isinstance(array, pa.StructArray):
        fields = [with_times(array.field(place), changed) for place in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=mask)
    if isinstance(array, pa.MapArray):
        entry = [array.type.key_field, array.type.item_field]
        entries: Array = pa.StructArray.from_arrays([array.keys, array.items], fields=entry)
        values = with_times(entries, changed)
    else:
        values = with_times(cast(ListArray, array).values, changed)
    return rebuilt(array, kind, values)


def has_times(kind: Any) -> bool:
    """Whether a value of the type has a timestamp without a zone in it."""
    return has_type(kind, lambda each: pa.types.is_timestamp(each) and each.tz is None)


def refuse_fractions_before_1970(name: str, column: ChunkedArray) -> None:
    """Raise RefusedTable if there are any, within nested values as well.

    Arrow writes their nanoseconds negative (arrow/adapters/orc/util.cc), and Java's readers fail at those.
    """
    for chunk in column.chunks:
        for leaf in _leaves(chunk):
            early = leaf.filter(pc.less(leaf, pa.scalar(0, leaf.type))) if pa.types.is_timestamp(leaf.type) else None
            if early is not None and len(early) and not early.equals(pc.floor_temporal(early, unit="second")):
                raise RefusedTable(
                    f"column {name}",
                    "times before 1970 with a fraction of a second are not written to ORC files",
                    "Arrow writes them as Java cannot read them; keep such times in Parquet files",
                )


def _leaves(array: Datum) -> Iterator[Array]:
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(array.type):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_list(array.type):
        yield from _leaves(array.flatten())
    else:
        yield array
