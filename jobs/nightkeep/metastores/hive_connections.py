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

PATIENCE: Final = (30.0, 120.0)
"""Time limits in seconds: to connect, and for an answer. The second is shorter than the life of a lock (300 s)."""
_FAILED: Final = (TTransportException, TProtocolException, TApplicationException, MetaException)


class MetastoreConnections:
    """In place of pyiceberg's client, whose only connection no two threads can share, and which waits for ever.

    `uri` may list several metastores with the same content: the first that answers is asked. Raises OSError if none
    does, and if a request fails without an answer.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._open = threading.local()

    def __enter__(self) -> Client:
        failures: list[TTransportException] = []
        for uri in str(self._settings["uri"]).split(","):
            client = HiveCatalog._create_hive_client({**self._settings, "uri": uri.strip()})
            try:
                _wait_for(client._transport, PATIENCE[0])
                entered = client.__enter__()
            except TTransportException as failure:
                failures.append(failure)
                continue
            _wait_for(client._transport, PATIENCE[1])
            _limit(entered)
            self._stack.append(client)
            return entered
        raise ConnectionError(f"no metastore answers: {_why(failures[0])}") from failures[0]

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.pop().__exit__(kind, failure, trace)
        if isinstance(failure, _FAILED):
            raise ConnectionError(f"{type(failure).__name__}: {getattr(failure, 'message', failure)}") from failure

    @property
    def _stack(self) -> list[Any]:
        if not hasattr(self._open, "stack"):
            self._open.stack = []
        return self._open.stack  # type: ignore[no-any-return]


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
