"""`on:` of a policy -> the receivers of each event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from nightkeep.model.receivers import AirflowConnection, AirflowNotifier, Receiver, Webhook

_EXPECTED: Final = "the name of an Airflow connection, {webhook: URL}, or {notifier: IMPORT PATH, kwargs: {...}}"
_PATH: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")

RECEIVERS_SCHEMA: Final[dict[str, object]] = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "properties": {
                    "webhook": {"type": "string", "minLength": 1},
                    "notifier": {"type": "string", "minLength": 1},
                    "kwargs": {"type": "object"},
                },
                "oneOf": [{"required": ["webhook"], "maxProperties": 1}, {"required": ["notifier"]}],
                "not": {"required": ["webhook", "notifier"]},
                "additionalProperties": False,
            },
        ]
    },
}


def parse_receivers(value: object) -> tuple[Receiver, ...]:
    """The receivers of an event. Raises ValueError(expected), or ValueError(expected, found, inside) for one of them:
    `inside` leads there."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, list):
        raise ValueError(f"a list of receivers, each {_EXPECTED}")
    return tuple(_receiver(item, (i,)) for i, item in enumerate(value))


def _receiver(item: object, here: tuple[int]) -> Receiver:
    match item:
        case str() if item.strip():
            return AirflowConnection(item)
        case {"webhook": str(url), **rest} if not rest:
            return Webhook(_url(url, here))
        case {"notifier": str(path), **rest} if rest.keys() <= {"kwargs"} and _PATH.fullmatch(path):
            kwargs = rest.get("kwargs", {})
            if isinstance(kwargs, Mapping):
                return AirflowNotifier(path, dict(kwargs))
    raise ValueError(_EXPECTED, _shown(item), here)


def _url(text: str, here: tuple[int]) -> str:
    """A URL, or a text with variables, whose values are known when a message is sent."""
    if "${" not in text and (urlsplit(text).scheme not in ("http", "https") or not urlsplit(text).hostname):
        raise ValueError("a webhook's URL, which starts with https:// or http://, or ${NAME}", "another text", here)
    return text


def _shown(item: object) -> str:
    """What a receiver may hold is secret, so that only its keys are shown."""
    if isinstance(item, Mapping):
        return f"a mapping with {', '.join(map(str, item)) or 'nothing'}"
    return "text" if isinstance(item, str) and item else "nothing" if item is None else type(item).__name__
