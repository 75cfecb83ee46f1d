"""A title, sentences and a table -> a piece of HTML for a notebook. Short, and every text in it is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from nightkeep.redaction import redact

_MOST_ROWS: Final = 50
_LONGEST: Final = 300
# A notebook's own colours stay, in the dark too.
_STYLE: Final = (
    "<style>.nightkeep{font-family:system-ui,sans-serif;margin:.3em 0 .8em}.nightkeep p{margin:.3em 0}"
    ".nightkeep table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".nightkeep th,.nightkeep td{text-align:left;padding:.25em .8em .25em 0;vertical-align:top;"
    "border-bottom:1px solid rgba(128,128,128,.35)}.nightkeep th{font-weight:normal;opacity:.75}</style>"
)


def render_card(
    title: str, sentences: Sequence[str], head: Sequence[str] = (), rows: Sequence[Sequence[str]] = ()
) -> str:
    """The HTML, without credentials. Of a long table, the first rows and the number of the others."""
    parts = [f"<strong>{_text(title)}</strong>", *(f"<p>{_text(sentence)}</p>" for sentence in sentences)]
    if rows:
        lines = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:_MOST_ROWS])
        names = "".join(f"<th>{_text(name)}</th>" for name in head)
        parts.append(f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>")
    if len(rows) > _MOST_ROWS:
        parts.append(f"<p>{len(rows) - _MOST_ROWS:,} more</p>")
    return redact(f'<div class="nightkeep">{_STYLE}{"".join(parts)}</div>')


def _text(text: str) -> str:
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    return escape(cut)
