"""A store -> an error if its endpoint takes a connection and answers nothing; whether this machine has keys by itself.

The client of a store gives each request minutes, as a request may carry megabytes, and tries it again. An endpoint that
never answers would cost each table that, and so would the address at which clouds give a machine its keys.
"""

from __future__ import annotations

import os
import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies

from nightkeep.limits import PATIENCE
from nightkeep.silence import note_silence, patience, server_of, why_silent

_ROLE_SECONDS: Final = 2.0
"""For an answer of a service on the machine's own network."""
_EVERYWHERE: Final = "169.254.169.254"
"""The address of such a service in every cloud."""
_HOSTS: Final = {
    "s3": (("AWS_METADATA_ENDPOINT", _EVERYWHERE),),
    "gs": (("GCE_METADATA_HOST", "metadata.google.internal"), ("GCE_METADATA_IP", _EVERYWHERE)),
    "abfss": (("AZURE_MSI_ENDPOINT", _EVERYWHERE), ("AZURE_IDENTITY_ENDPOINT", _EVERYWHERE)),
}
"""By scheme of a store: variables that name another address, as its client reads them, and the usual one."""


def require_first_answer(endpoint: str, advice: str) -> None:
    """Raise OSError if the endpoint does not answer within PATIENCE, or did not lately.

    Any answer counts; it may refuse the request, which has no signature. An endpoint that refuses the connection is
    left to the client.
    """
    resource = f"the store at {server_of(endpoint)}"
    why = why_silent(resource)
    if why is None and not _answers(endpoint):
        note_silence(resource)
        why = f"none within {PATIENCE.value} seconds ({PATIENCE.variable})"
    if why is not None:
        raise OSError(f"{resource}: expected an answer, found {why}; {advice}")


def _answers(endpoint: str) -> bool:
    parts, seconds = urlsplit(endpoint), float(patience())
    if getproxies().get(parts.scheme) or not parts.hostname:
        # Only the client knows the way through a proxy.
        return True
    connection = HTTPConnection(parts.hostname, parts.port, timeout=seconds)
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=_any_certificate())
    try:
        connection.request("HEAD", "/")
        connection.getresponse()
    except TimeoutError:
        return False
    except (OSError, HTTPException):
        return True
    finally:
        connection.close()
    return True


def _any_certificate() -> ssl.SSLContext:
    """Nothing is sent that needs one: the client verifies it, by its own authorities."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def has_role(scheme: str) -> bool:
    """Whether a service that gives out keys of the machine's role takes a connection."""
    named = [os.environ[variable] for variable, _ in _HOSTS[scheme] if os.environ.get(variable)]
    return any(_listens(address) for address in dict.fromkeys(named or [usual for _, usual in _HOSTS[scheme]]))


def _listens(address: str) -> bool:
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_ROLE_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
