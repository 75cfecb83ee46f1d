"""Column defaults of nanosecond timestamps, as JSON -> nanoseconds since the epoch, and back.

Iceberg table spec, Appendix D, "JSON single-value serialization". pyiceberg converts the defaults of each type by
functions that it dispatches by type, and has none of these two: they are registered there.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, cast

from pyiceberg.conversions import from_json, to_json
from pyiceberg.types import PrimitiveType, TimestampNanoType, TimestamptzNanoType

_TEXT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|\+00:00)?")
_EPOCH: Final = datetime(1970, 1, 1)
_SECOND: Final = timedelta(seconds=1)
_NANOS: Final = 1_000_000_000


def nanos_of(text: object, *, zoned: bool) -> int:
    """Nanoseconds since the epoch of a default; a number is taken as it is. `zoned`: the type has a zone, which in
    metadata is UTC. Raises ValueError for a text that is none, and for a time beyond 64 bits."""
    if type(text) is int:
        return text
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None or bool(match[3]) != zoned:
        raise ValueError(f"{text!r}: expected an ISO time of nanoseconds {'in UTC' if zoned else 'without a zone'}")
    nanos = (datetime.fromisoformat(match[1]) - _EPOCH) // _SECOND * _NANOS + int((match[2] or "").ljust(9, "0"))
    if not -(1 << 63) <= nanos < 1 << 63:
        raise ValueError(f"{text!r}: expected a time of the years 1677 to 2262")
    return nanos


def text_of(nanos: int, *, zoned: bool) -> str:
    """The text of a default, as Iceberg's Java writes it."""
    seconds, rest = divmod(nanos, _NANOS)
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
    return f"{moment}{f'.{rest:09d}' if rest else ''}{'+00:00' if zoned else ''}"


def register() -> None:
    """Let pyiceberg read and write such defaults, as numbers."""
    # pyiceberg states no type of these functions that another one could have.
    reads, writes = cast(Any, from_json), cast(Any, to_json)
    for kind, zoned in ((TimestampNanoType, False), (TimestamptzNanoType, True)):
        reads.register(kind, partial(_parsed, zoned=zoned))
        writes.register(kind, partial(_spelled, zoned=zoned))


def _parsed(_: PrimitiveType, value: object, *, zoned: bool) -> int:
    return nanos_of(value, zoned=zoned)


def _spelled(_: PrimitiveType, value: int, *, zoned: bool) -> str:
    return text_of(value, zoned=zoned)
