"""Names of several parts <-> one text: dots between parts, backquotes around a part that has dots itself, as in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PART = re.compile(r"(?:`((?:[^`]|``)+)`|([^.`]+))(\.|$)")


def split_name(text: str) -> tuple[str, ...]:
    """`` `a.b`.c `` as ("a.b", "c"). Within backquotes, two backquotes stand for one. Raises ValueError for an empty
    part and for a backquote that does not enclose a whole part."""
    parts: list[str] = []
    at, more = 0, True
    while more:
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(f"names and dots, with backquotes around a name that has dots, found {text!r}")
        quoted, plain, dot = part.groups()
        parts.append(plain if quoted is None else quoted.replace("``", "`"))
        at, more = part.end(), bool(dot)
    return tuple(parts)


def join_name(parts: Iterable[str]) -> str:
    """The inverse of `split_name`. Uses backquotes only if they are needed."""
    return ".".join(quoted_part(part) if {".", "`"} & set(part) else part for part in parts)


def quoted_part(part: str) -> str:
    return f"`{part.replace('`', '``')}`"
