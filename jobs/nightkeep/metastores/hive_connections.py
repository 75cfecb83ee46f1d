"""Addresses of a Hive metastore -> a connection for each use, of one that answers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import MetaException
from pyiceberg.catalog.hive import HiveCatalog
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from nightkeep.limits import LISTED
from nightkeep.silence import note_silence, patience, why_silent

COMMIT_SECONDS: Final = 120.0
"""For an answer to a change: shorter than the life of a lock (300 s). A read waits for PATIENCE."""
_FAILED: Final = (TTransportException, TProtocolException, TApplicationException, MetaException)


class MetastoreConnections:
    """Connections to a metastore, one per thread and with timeouts. pyiceberg's client has only one, without a timeout.

    `uri` may list several metastores with the same content: the first that answers is asked. One that was silent lately
    is left out. Raises OSError if none answers, and if a request fails without an answer.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._open = threading.local()

    def __enter__(self) -> Client:
        failures: list[TTransportException] = []
        for uri in map(str.strip, str(self._settings["uri"]).split(",")):
            if why := why_silent(_named(uri)):
                failures.append(TTransportException(message=why))
                continue
            client = HiveCatalog._create_hive_client({**self._settings, "uri": uri})
            client.asked = uri  # type: ignore[attr-defined]
            try:
                _wait_for(client._transport, patience())
                entered = client.__enter__()
            except TTransportException as failure:
                failures.append(failure)
                continue
            _limit(entered)
            self._stack.append(client)
            return entered
        raise ConnectionError(f"no metastore answers: {_why(failures[0])}") from failures[0]

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        client = self._stack.pop()
        client.__exit__(kind, failure, trace)
        if getattr(failure, "type", None) == TTransportException.TIMED_OUT and isinstance(failure, TTransportException):
            note_silence(_named(client.asked))
        if isinstance(failure, _FAILED):
            raise ConnectionError(f"{type(failure).__name__}: {getattr(failure, 'message', failure)}") from failure

    @property
    def _stack(self) -> list[Any]:
        if not hasattr(self._open, "stack"):
            self._open.stack = []
        return self._open.stack  # type: ignore[no-any-return]


def wait_for_change(client: Client) -> None:
    """Give the next answers of a connection the time of a change, whose outcome is unknown once it is given up."""
    _wait_for(client._iprot.trans, COMMIT_SECONDS)


def _named(uri: str) -> str:
    return f"the metastore at {uri}"


def _wait_for(transport: Any, seconds: float) -> None:
    """Limit how long the socket below a transport waits."""
    socket = getattr(transport, "_TBufferedTransport__trans", None) or transport.transport
    socket.setTimeout(seconds * 1000)


def _limit(client: Client) -> None:
    """Limit how many names one answer may have, before they are read. Thrift itself limits texts."""
    client._iprot.container_length_limit = LISTED.value


def _why(failure: TTransportException) -> str:
    return getattr(failure.inner, "strerror", None) or str(failure)


# It prints what is raised as well.
logging.getLogger("thrift.transport.TSocket").setLevel(logging.CRITICAL)
