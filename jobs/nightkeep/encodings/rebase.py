"""Days and times of the hybrid Julian-Gregorian calendar -> those of the proleptic Gregorian one, as Spark's readers
rebase them (RebaseDateTime.scala): the local date and time of day stay, the instant moves.

Before 1582-10-15 the calendars name days differently. Besides, the old time classes of Java know no local mean times:
until a zone's last change, at most until 1900, its times move by a shift of the zone too. `rebase_zones.txt` has the
offsets, changes and shifts of Spark's own table.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.model.arrow_types import Array, ChunkedArray

Integers = npt.NDArray[np.int64]

CUTOVER_DAY: Final = -141_427
"""1582-10-15, the first day of the Gregorian calendar."""
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_YEAR_ONE: Final = -719_164 * _DAY
"""The 1st of January of year 1 in the Julian calendar."""
_LAST_CHANGE: Final = -2_208_988_800 * _SECOND
"""1900-01-01 in UTC: later times are the same in both calendars, in every zone (RebaseDateTime requires it)."""
_CUSTOM: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d\d))?")
_FIXED: Final = re.compile(r"UTC|UCT|Zulu|Universal|GMT0?|Greenwich|Etc/.*")
"""Names that mean one offset at all times. Others may have a local mean time, by the release of Java: CET, PST8PDT."""
_OFFSET: Final = re.compile(r"Z|(UTC|UT|GMT)?[+-][\d:]+")
SHORT_ZONES: Final[Mapping[str, str]] = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Short names of zones that Java accepts (ZoneId.SHORT_IDS), but for EST, MST and HST, which are offsets there."""


@dataclass(frozen=True, slots=True)
class RebaseZone:
    """A zone's `offset` from UTC before its first change, and the `shift` of its times. All in microseconds; `changes`
    are ascending instants, each with the shift of the times from there on. `is_fixed`: its name means one offset."""

    offset: int
    shift: int
    changes: tuple[tuple[int, int], ...] = ()
    is_fixed: bool = False


def rebase_zone(name: str) -> RebaseZone | None:
    """The zone of this name as Java's TimeZone.getTimeZone finds it; None for one that Spark's table does not have."""
    known = _zones().get(SHORT_ZONES.get(name, name))
    if known is not None:
        return replace(known, is_fixed=_FIXED.fullmatch(name) is not None)
    if custom := _CUSTOM.fullmatch(name):
        sign, hours, minutes = custom[1], int(custom[2]), int(custom[3] or 0)
        in_range = hours < 24 and minutes < 60
        seconds = (hours * 60 + minutes) * 60 if in_range else 0
        return RebaseZone(_SECOND * (-seconds if sign == "-" else seconds), 0, is_fixed=True)
    # To that function any other offset is unknown, which to it means GMT.
    return RebaseZone(0, 0, is_fixed=True) if _OFFSET.fullmatch(name) else None


def rebased_days(column: Array) -> Array:
    """Dates (date32), each as the date that its calendar names."""
    least = pc.min(column.cast(pa.int32())).as_py()
    if least is None or least >= CUTOVER_DAY:
        return column
    nulls, days = _numbers(column.cast(pa.int32()).cast(pa.int64()))
    return pa.array(_gregorian(days).astype(np.int32), pa.int32(), mask=nulls).cast(pa.date32())


def may_differ(column: Array | ChunkedArray) -> bool:
    """Whether any of these times (timestamps in microseconds) is before all zones use one calendar and one offset."""
    least = pc.min(column.cast(pa.int64())).as_py()
    return least is not None and least < _LAST_CHANGE


def is_in_table(column: Array, zone: RebaseZone) -> bool:
    """Whether Spark's table has all of these times. Before year 1 Spark asks Java, whose releases differ in the first
    local mean time of some zones; a zone of one offset has none."""
    least = pc.min(column.cast(pa.int64())).as_py()
    return zone.is_fixed or least is None or least >= _YEAR_ONE - zone.offset


def rebased_micros(column: Array, zone: RebaseZone) -> Array:
    """Timestamps in microseconds, each as the instant of the date and time that its calendar names in the zone."""
    if not may_differ(column):
        return column
    nulls, micros = _numbers(column.cast(pa.int64()))
    local_days = (micros + zone.offset) // _DAY
    moved = micros + (_gregorian(local_days) - local_days) * _DAY + zone.shift
    for start, shift in zone.changes:
        moved = np.where(micros >= start, micros + shift, moved)
    return pa.array(moved, pa.int64(), mask=nulls).cast(column.type)


def _gregorian(days: Integers) -> Integers:
    """Days since 1970 of the hybrid calendar -> of the same date in the Gregorian one. A 29th of February that this
    has not is the day after the 28th."""
    old = days < CUTOVER_DAY
    return np.where(old, _days_of(*_julian_date(days)), days)


def _julian_date(days: Integers) -> tuple[Integers, Integers]:
    """(year, from March on; days since its 1st of March) in the Julian calendar. Year 0 is before year 1."""
    since = days + _JULIAN_SHIFT
    cycle, rest = since // _FOUR_YEARS, since % _FOUR_YEARS
    year = np.minimum(rest // 365, 3)
    return cycle * 4 + year, rest - year * 365


_FOUR_YEARS: Final = 1461
_JULIAN_SHIFT: Final = 719_470
"""Days from the 1st of March of year 0 in the Julian calendar to 1970-01-01."""
_GREGORIAN_SHIFT: Final = 719_468


def _days_of(year: Integers, day: Integers) -> Integers:
    """Days since 1970 of a day of a year from March on, in the Gregorian calendar."""
    return year * 365 + year // 4 - year // 100 + year // 400 + day - _GREGORIAN_SHIFT


def _numbers(column: Array) -> tuple[npt.NDArray[np.bool_] | None, Integers]:
    """Flags of nulls (None if there are none), and the values; a null's is zero."""
    nulls = np.asarray(column.is_null()) if column.null_count else None
    filled: Array = column if nulls is None else pc.if_else(column.is_valid(), column, 0)
    return nulls, filled.to_numpy(zero_copy_only=False)


@cache
def _zones() -> Mapping[str, RebaseZone]:
    found: dict[str, RebaseZone] = {}
    data = pkgutil.get_data(__name__.rpartition(".")[0], "rebase_zones.txt") or b""
    for line in data.decode().splitlines():
        if not line.startswith("#"):
            offset, shift, changes, *names = line.split()
            pairs = () if changes == "-" else (change.split(":") for change in changes.split(","))
            moves = tuple((int(start) * _SECOND, int(moved) * _SECOND) for start, moved in pairs)
            found |= dict.fromkeys(names, RebaseZone(int(offset) * _SECOND, int(shift) * _SECOND, moves))
    return found
