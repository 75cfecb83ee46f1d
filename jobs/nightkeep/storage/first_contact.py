"""The endpoint of a store -> an error if it takes a connection and answers nothing. Asked before the first look.

The client of a store gives each request minutes, as a request may carry megabytes, and tries it again. An endpoint that
never answers would cost each table that.
"""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit
from urllib.request import getproxies

from nightkeep.limits import PATIENCE
from nightkeep.silence import note_silence, patience, server_of, why_silent


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
