"""DAG run -> the prefix of its run ids. Pure: the same DAG run has the same prefix, on every try."""

from __future__ import annotations

import hashlib
import re


def run_prefix(dag_id: str, run_id: str) -> str:
    """Lower case letters, digits, `.`, `_` and `-` only, at most 100: it ends up in file names and in URLs.

    The digest keeps two run ids apart that differ only in what is replaced (`+01:00` and `-01:00`).
    """
    digest = hashlib.sha256(f"{dag_id}\n{run_id}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = re.sub(r"[^a-z0-9._-]+", "-", f"{dag_id}-{run_id}".lower())
    return f"{readable[:91]}-{digest}"
