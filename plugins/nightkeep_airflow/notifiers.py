"""A message -> a notifier of Airflow's, or a connection. Imported by the tasks that send.

A notifier gets the message as `nightkeep` in the context of its templates, and nothing else: no connection and no
variable can be read from what a policy writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from nightkeep.errors import UsageError
from nightkeep.model.receivers import AirflowConnection, AirflowNotifier, Receiver
from nightkeep.notifications.messages import Message
from nightkeep.notifications.sending import WEBHOOKS, Deliver
from nightkeep.notifications.webhooks import post_json, resolved
from nightkeep.redaction import remember
from nightkeep_airflow.releases import BaseHook, BaseNotifier, mask_secret

# How a message is sent by a connection of this type: the notifier, and its argument for the connection.
_OF_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "discord": ("discord.notifications.discord.DiscordNotifier", "discord_conn_id"),
    "slackwebhook": ("slack.notifications.slack_webhook.SlackWebhookNotifier", "slack_webhook_conn_id"),
    "smtp": ("smtp.notifications.smtp.SmtpNotifier", "smtp_conn_id"),
}
_HTTP: Final = "http"
# What notifiers call the parts of a message. An argument that the policy gives stands.
_PARTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("text", "message", "body", "description"), "text"),
    **dict.fromkeys(("subject", "title", "summary"), "title"),
    "html_content": "html",
}


def _by_connection(receiver: Receiver, message: Message) -> None:
    assert isinstance(receiver, AirflowConnection)
    connection = BaseHook.get_connection(receiver.name)
    kind = connection.conn_type or "none"
    if kind == _HTTP:
        _by_http(connection, message)
        return
    if kind not in _OF_TYPES:
        known = ", ".join((*_OF_TYPES, _HTTP))
        raise UsageError(f"expected a connection of type {known}, found {kind}; for others name a notifier")
    path, argument = _OF_TYPES[kind]
    # A connection has no place for a recipient, which only mails need.
    to = {"to": connection.extra_dejson["to"]} if "to" in connection.extra_dejson else {}
    _notify(f"airflow.providers.{path}", {argument: receiver.name, **to}, message)


def _by_http(connection: Any, message: Message) -> None:
    """POST to the connection's address. Texts of its extra are headers, as with Airflow's own hook."""
    host = connection.host or ""
    base = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    port = f":{connection.port}" if connection.port else ""
    headers = {name: value for name, value in connection.extra_dejson.items() if isinstance(value, str)}
    remember(headers.values())
    user = (connection.login, connection.password or "") if connection.login else None
    post_json(resolved(f"{base}{port}"), message, headers, user)


def _by_notifier(receiver: Receiver, message: Message) -> None:
    assert isinstance(receiver, AirflowNotifier)
    _notify(receiver.path, _with_variables(receiver.kwargs), message)


def _notify(path: str, kwargs: Mapping[str, Any], message: Message) -> None:
    module, _, name = path.rpartition(".")
    found = getattr(import_module(module), name)
    if not (isinstance(found, type) and issubclass(found, BaseNotifier)):
        raise UsageError(f"{path}: expected a notifier of Airflow's, found something else")
    parts = {"title": message.title, "text": message.text, "html": message.html}
    known = inspect.signature(found).parameters
    # By its name where it is a template: the text of a message is no template, whatever a table is called.
    ours = {
        argument: f"{{{{ nightkeep.{part} }}}}" if argument in found.template_fields else parts[part]
        for argument, part in _PARTS.items()
        if argument in known and argument not in kwargs
    }
    found(**{**ours, **kwargs})({"nightkeep": {**message.to_json(), **parts}})


def _with_variables(value: Any) -> Any:
    """The arguments with the values of `${NAME}`, which are masked from now on."""
    if isinstance(value, Mapping):
        return {name: _with_variables(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_variables(each) for each in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    found = resolved(value)
    mask_secret(found)
    return found


DELIVER: Final[Mapping[type, Deliver]] = {**WEBHOOKS, AirflowConnection: _by_connection, AirflowNotifier: _by_notifier}
"""What a process of Airflow's can send to."""
