"""DAG run -> the prefix of its run ids. Pure: the same DAG run has the same prefix, on every try."""

from __future__ import annotations

import hashlib
import re


def run_prefix(dag_id: str, run_id: str) -> str:
    """Lower case letters, digits, `.`, `_` and `-` only, at most 100: it ends up in file names and in URLs.

    The digest keeps two run ids apart that differ only in what is replaced (`+01:00` and `-01:00`).
    """
    digest = hashlib.sha256(f"{dag_id}\n{run_id}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_readable(f'{dag_id}-{run_id}')[:_LONGEST]}-{digest}"


def begins_as(prefix: str, dag_id: str) -> bool:
    """Whether a run of this DAG could have the prefix, as far as its readable part goes."""
    return prefix.startswith(_readable(f"{dag_id}-")[:_LONGEST])


_LONGEST = 91


def _readable(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower())
