"""A message -> a POST of JSON to a webhook. Waits for a short time only, and follows no redirect."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from nightkeep.errors import NotAccepted
from nightkeep.model.receivers import Webhook
from nightkeep.notifications.messages import Message
from nightkeep.policy import substitute
from nightkeep.redaction import remember

_CONNECT_SECONDS: Final = 5
_ANSWER_SECONDS: Final = 10
_LEAST_SECRET: Final = 16
"""Parts of a URL's path of this length are taken for secrets. Shorter ones are words, such as `services`."""


def post(webhook: Webhook, message: Message) -> None:
    """Send the message. Raises NotAccepted, and whatever the client raises where no answer comes.

    Raises AddressError for a variable that is not set."""
    post_json(resolved(webhook.url), message)


def resolved(text: str, environ: Mapping[str, str] | None = None) -> str:
    """The text with the values of its variables. From now on they are secrets in every text, and so are the parts of a
    URL that are long."""
    value = substitute(text, os.environ if environ is None else environ)
    parts = urlsplit(value)
    words = [*parts.path.split("/"), *parts.query.replace("=", "&").split("&")] if parts.scheme in _URLS else []
    remember([*([value] if value != text or words else []), *(word for word in words if len(word) >= _LEAST_SECRET)])
    return value


_URLS: Final = ("http", "https")
_JSON: Final = {"Content-Type": "application/json"}


def post_json(
    url: str, message: Message, headers: Mapping[str, str] | None = None, user: tuple[str, str] | None = None
) -> None:
    """Send the message to a URL, with these headers and by this user, if any. Raises as `post`."""
    import requests  # noqa: PLC0415 -- DAG files import this module, and nothing is sent when they are parsed

    answer = requests.post(
        url,
        data=json.dumps(message.to_json()).encode(),
        headers={**_JSON, **(headers or {})},
        auth=user,
        timeout=(_CONNECT_SECONDS, _ANSWER_SECONDS),
        allow_redirects=False,
        stream=True,
    )
    with answer:
        if not 200 <= answer.status_code < 300:
            raise NotAccepted(f"expected an answer of success, found {answer.status_code} {answer.reason}")
