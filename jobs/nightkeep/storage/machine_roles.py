"""Whether this machine is in a cloud that gives it keys by itself. Without one, the clients would wait for minutes."""

from __future__ import annotations

import os
import socket
from typing import Final
from urllib.parse import urlsplit

_SECONDS: Final = 2.0
"""For an answer of a service on the machine's own network."""
_EVERYWHERE: Final = "169.254.169.254"
"""The address of such a service in every cloud."""
_HOSTS: Final = {
    "gs": (("GCE_METADATA_HOST", "metadata.google.internal"), ("GCE_METADATA_IP", _EVERYWHERE)),
    "abfss": (("AZURE_MSI_ENDPOINT", _EVERYWHERE), ("AZURE_IDENTITY_ENDPOINT", _EVERYWHERE)),
}
"""By scheme of a store: variables that name another address, as its client reads them, and the usual one."""


def has_role(scheme: str) -> bool:
    """Whether a service that gives out keys of the machine's role takes a connection."""
    named = [os.environ[variable] for variable, _ in _HOSTS[scheme] if os.environ.get(variable)]
    return any(_listens(address) for address in dict.fromkeys(named or [usual for _, usual in _HOSTS[scheme]]))


def _listens(address: str) -> bool:
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
