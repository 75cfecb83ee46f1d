"""A condition or an assignment -> the columns that it names. For documents: what is wrong with a text is reported
later."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def named_columns(text: str) -> tuple[str, ...]:
    """The columns in their order, each once; none of a text that is no expression."""
    try:
        node = sqlglot.parse_one(text, dialect="spark")
    except (SqlglotError, RecursionError):
        return ()
    # The dialect takes "a" in double quotes for a text, so that every Column is one.
    found = sorted(node.find_all(exp.Column), key=lambda each: text.find(each.name))
    return tuple(dict.fromkeys((each.parts[0] if each.parts else each).name for each in found))
