"""Options whose credentials expire -> options with valid credentials, renewed in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

Options: TypeAlias = tuple[tuple[str, str], ...]
"""Properties that are needed to reach a store, such as `s3.endpoint`."""
Renewal: TypeAlias = Callable[[], Options]
"""Gives options with newer credentials. It is hashed and pickled: equal ones ask for the same."""

ENDS: Final = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms.")
"""Beginnings of names of properties that state when credentials end, in milliseconds."""
_EARLY_SECONDS: Final = 60.0
"""How long before their end credentials are renewed; no request takes longer. Short-lived ones are at half of their
life."""
_UNSTATED_SECONDS: Final = 900.0
"""The assumed life of credentials that do not state when they end: the shortest that Amazon gives (AssumeRole)."""


@dataclass(frozen=True, slots=True)
class _Held:
    options: Options
    ends_at: float
    renewed_at: float


_HELD: Final[dict[Renewal, _Held]] = {}
"""The newest options of this process."""
_ONE_AT_A_TIME: Final = threading.Lock()


def current(options: Options, renewal: Renewal | None) -> Options:
    """The options, or newer ones if their credentials end soon. Raises as the renewal.

    Options from another process are used if their credentials end later than the known ones.
    """
    if renewal is None:
        return options
    now = time.time()
    with _ONE_AT_A_TIME:
        held = _HELD.get(renewal)
        if held is None or _ends_at(options, held.ends_at) > held.ends_at:
            held = _HELD[renewal] = _held(options, now)
        if now >= held.renewed_at:
            held = _HELD[renewal] = _held(renewal(), now)
        return held.options


def _held(options: Options, now: float) -> _Held:
    ends_at = _ends_at(options, now + _UNSTATED_SECONDS)
    life = max(ends_at - now, 0.0)
    return _Held(options, ends_at, now + max(life / 2, life - _EARLY_SECONDS))


def _ends_at(options: Options, unstated: float) -> float:
    stated = [int(value) / 1000 for name, value in options if name.startswith(ENDS) and value.isdecimal()]
    return min(stated, default=unstated)
