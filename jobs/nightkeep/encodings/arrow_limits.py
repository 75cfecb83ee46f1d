"""What Arrow raises for sound files that it cannot read, and the refusal of such a file."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nightkeep.errors import RefusedTable, reason_of

LIMITS: Final = (pa.ArrowNotImplementedError, pa.ArrowCapacityError)
"""What Arrow raises for a sound file that it cannot read: an array beyond 2 GiB, a codec that it lacks."""


def beyond_arrow(subject: str, failure: Exception) -> RefusedTable:
    """The refusal of a file for one of LIMITS."""
    advice = "rewrite it with the engine that wrote it, in smaller row groups or with another codec"
    return RefusedTable(subject, f"a file beyond what Arrow reads: {reason_of(failure)}", advice)
