"""Kinds of events of a run, and the receivers that a policy names for them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit


class EventKind(StrEnum):
    """The outcome of a run for a table, a table on hold, a run that is late."""

    VERIFIED = "verified"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REFUSED = "refused"
    CONFLICTED = "conflicted"
    MISMATCH = "mismatch"
    FAILED = "failed"
    HOLD = "hold"
    LATE = "late"


_VARIABLE: Final = re.compile(r"\$\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that takes JSON, as the policy writes it: `${NAME}` is replaced when a message is sent."""

    url: str

    @property
    def key(self) -> str:
        return f"webhook {self.url}"

    def __str__(self) -> str:
        """Without the path, which is the secret of most webhooks."""
        host = urlsplit(self.url).hostname if _VARIABLE.search(self.url) is None else None
        return f"webhook {host or ' '.join(_VARIABLE.findall(self.url))}"


@dataclass(frozen=True, slots=True)
class AirflowConnection:
    """The id of a connection of Airflow's. Its type decides how a message is sent."""

    name: str

    @property
    def key(self) -> str:
        return f"connection {self.name}"

    def __str__(self) -> str:
        return f"connection {self.name}"


@dataclass(frozen=True, slots=True)
class AirflowNotifier:
    """The import path of a notifier of Airflow's, and its arguments as JSON holds them."""

    path: str
    kwargs: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"notifier {self.path} {json.dumps(self.kwargs, sort_keys=True, default=str)}"

    def __str__(self) -> str:
        return f"notifier {self.path.rpartition('.')[2]}"


Receiver = Webhook | AirflowConnection | AirflowNotifier
