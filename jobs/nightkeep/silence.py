"""Resources that did not answer -> an error at once for the next table that needs one, for ten minutes.

A catalog, metastore, namenode or store that takes connections and never answers would cost each table the whole wait.
What one process learns, its parent and its siblings learn with the next answer. A later session asks again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from nightkeep.errors import Unreachable
from nightkeep.limits import PATIENCE

FORGOTTEN_SECONDS: Final = 600.0
_SINCE: Final[dict[str, float]] = {}
"""When each silent resource was given up, in seconds of the epoch."""
_log = logging.getLogger(__name__)


def patience() -> int:
    """Seconds to wait for the answer to a read."""
    return max(1, PATIENCE.value)


def server_of(url: str) -> str:
    """Scheme, host and port of a URL, without a user and a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def note_silence(resource: str) -> None:
    """Remember that the resource did not answer in time."""
    _SINCE[resource] = time.time()


def is_silent(resource: str) -> bool:
    """Whether the resource was silent lately, in this process or in one that it learned it from."""
    return time.time() - _SINCE.get(resource, 0.0) < FORGOTTEN_SECONDS


def why_silent(resource: str) -> str | None:
    """Why the resource is not asked; None if it may be."""
    return _text(_SINCE[resource]) if is_silent(resource) else None


def require_answering(resource: str) -> None:
    """Raise Unreachable, without asking, for a resource that was silent lately."""
    if why := why_silent(resource):
        raise Unreachable(resource, f"an answer within {PATIENCE.value} seconds ({PATIENCE.variable})", why)


def forget_silence() -> None:
    """Ask every resource again."""
    _SINCE.clear()


def silent() -> Mapping[str, float]:
    """What another process has to learn."""
    return dict(_SINCE)


def learn_silence(known: Mapping[str, float], *, logs: bool = False) -> None:
    """Take over what another process knows. Each resource is logged once, if asked to."""
    for resource, since in known.items():
        if logs and not is_silent(resource):
            _log.warning("%s: expected an answer within %d seconds, found %s", resource, PATIENCE.value, _text(since))
        _SINCE[resource] = max(since, _SINCE.get(resource, 0.0))


def _text(since: float) -> str:
    at = datetime.fromtimestamp(since, UTC)
    return f"none at {at:%H:%M} UTC; it is not asked again in this run for {FORGOTTEN_SECONDS / 60:.0f} minutes"
