"""Parameters of a DAG run -> what is wrong with them. Imports nothing slow: every process of Airflow's loads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final

TAG: Final = "nightkeep"
"""The tag of our DAGs. Other DAGs may have any parameters."""
REFUSED: Final = "nightkeep.refused"
"""Key of a request's scope: why it is refused."""
_LONGEST, _MOST = 80, 10
"""How many characters of a name, and how many names, a message shows."""


def unknown(conf: Mapping[str, object] | None, known: Collection[str]) -> str | None:
    """What is wrong with the parameters of a DAG run, in a sentence; None where each is a `known` one."""
    names = sorted(set(conf or {}) - set(known))
    if not names:
        return None
    expected = ", ".join(known) if known else "none, as this DAG has no parameters"
    shown = [repr(name[:_LONGEST]) for name in names[:_MOST]]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"parameters: expected {expected}; found {', '.join(shown)}{more}{_meant(names[:_MOST], known)}"


def _meant(unknown: Collection[str], known: Collection[str]) -> str:
    near = [match for name in unknown for match in get_close_matches(name[:_LONGEST], known, n=1)]
    return f"; did you mean {', '.join(near)}?" if near else ""
