"""What an operation or a format measured beyond the fields of a document -> labels and sentences. Pure.

A document may hold anything there. What is empty states nothing and is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from nightkeep.model.counted import counted
from nightkeep.pages.bars import show_bytes, show_seconds
from nightkeep.pages.column_metrics import DRAWN

_LONGEST: Final = 120


def facts_of(extra: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """A label and a text for each fact that no other part of a page shows."""
    for key, value in extra.items():
        if key in DRAWN or value is None or value in ("", [], {}, ()):
            continue
        label, show = _KNOWN.get(key, (_words(key), _text))
        yield label, _cut(show(value))


def _ran_on(value: object) -> str:
    named = _counts(value)
    tasks = [f"{counted(number, 'task')} on {name}" for name, number in named.items()]
    return ", ".join(tasks) if named else _text(value)


def _of_stages(value: object) -> str:
    if isinstance(value, Mapping) and all(isinstance(each, int | float) for each in value.values()):
        return ", ".join(f"{show_seconds(float(each))} to {name}" for name, each in value.items())
    return _text(value)


def _size(value: object) -> str:
    return show_bytes(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else _text(value)


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping) or not all(type(each) is int for each in value.values()):
        return {}
    return {str(name): number for name, number in value.items()}


_KNOWN: Final[Mapping[str, tuple[str, Callable[[object], str]]]] = {
    "executors": ("Where tasks ran", _ran_on),
    "cpu_seconds": ("CPU seconds of tasks", _of_stages),
    "losing": ("Columns whose queries skip fewer files", lambda value: _text(value)),
    "read_bytes": ("Bytes read", _size),
    "written_bytes": ("Bytes written", _size),
}


def _words(key: str) -> str:
    words = key.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}".replace("Cpu", "CPU")


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')} {_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
