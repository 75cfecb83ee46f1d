"""A request to start one of our DAGs -> 400 where it names a parameter that the DAG does not know; Airflow takes any.

Every other request passes unchanged. Every process of Airflow's loads this module: it imports nothing slow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from nightkeep_airflow.parameters import REFUSED

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES: Final = 1 << 20
"""The largest body that is examined. A larger request passes: the DAG run refuses unknown parameters itself."""
_TRIGGER: Final = re.compile(r"/api/v2/dags/([^/]+)/dagRuns")


class KnownParameters:
    """ASGI middleware around all of the API server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        dag_id = _triggered(scope)
        if dag_id is None:
            await self._app(scope, receive, send)
            return
        read = await _body_messages(receive)
        conf = _conf(b"".join(message.get("body", b"") for message in read))
        why = None
        if conf:
            from nightkeep_airflow import triggers  # noqa: PLC0415 -- takes seconds

            why = await triggers.wrong(scope["app"], dag_id, conf)
        app = self._app if why is None else triggers.app
        await app({**scope, REFUSED: why} if why else scope, _again(read, receive), send)


def _triggered(scope: Scope) -> str | None:
    """The DAG that a request is to start, None for any other request."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    match = _TRIGGER.fullmatch(scope["path"].removeprefix(scope.get("root_path", "").rstrip("/")))
    return match and match[1]


async def _body_messages(receive: Receive) -> list[Message]:
    """The request's body, or as much of it as is examined."""
    read: list[Message] = []
    size, more = 0, True
    while more and size <= MAX_BODY_BYTES:
        message = await receive()
        read.append(message)
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    return read


def _conf(body: bytes) -> Mapping[str, object] | None:
    """The parameters in a request's body; None where there are none, and where Airflow reports what is wrong with
    it."""
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    conf = value.get("conf") if isinstance(value, dict) else None
    return conf if isinstance(conf, dict) else None


def _again(read: Collection[Message], receive: Receive) -> Receive:
    """A receiver that returns the messages already received, then further ones."""
    before = iter(read)

    async def received() -> Message:
        message = next(before, None)
        return await receive() if message is None else message

    return received
