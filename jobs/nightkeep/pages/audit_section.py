"""The document of an audit -> its commits as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from nightkeep.pages.text_table import printable
from nightkeep.records.document import RunDocument


def audit_text(document: RunDocument) -> str:
    """The outcome, then a line for each commit that the document lists. Ends without a newline."""
    head = f"{document.table}: audit {document.outcome}: {document.reason}"
    return "\n".join(map(printable, [head, *(f"  {_line(each)}" for each in _commits(document))]))


def _commits(document: RunDocument) -> Iterator[Mapping[str, Any]]:
    section = document.extra.get("audit")
    listed = section.get("commits") if isinstance(section, Mapping) else None
    yield from (each for each in cast(list[object], listed or []) if isinstance(each, Mapping))


def _line(each: Mapping[str, Any]) -> str:
    made = datetime.fromtimestamp(int(each["time_ms"]) / 1000, UTC)
    counts = ""
    if each["missing"] or each["extra"]:
        counts = f", {each['missing']:,} rows missing, {each['extra']:,} extra, {each['doubled']:,} of them doubled"
    why = f": {each['why']}" if each["why"] else ""
    named = f"{each['version']} {each['kind']} by {each['author']}, {made:%Y-%m-%d %H:%M}"
    return f"{each['verdict']}: {named}{counts}{why}"
