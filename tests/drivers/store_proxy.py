"""The proxy before the store of a cluster: its port can be closed for a while, as when a store is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.drivers.fault_proxy import _handler, _Server
from tests.drivers.s3_faults import S3Faults


class StoreProxy(S3Faults):
    """Connections are refused while it is away. What was being answered is cut by the store's own end."""

    paused_seconds = 100.0
    """Less than a client waits for an answer."""

    @contextmanager
    def away(self, seconds: float) -> Iterator[None]:
        """The context is left when the port is open again."""
        began, address = time.monotonic(), self._server.server_address
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        try:
            yield
        finally:
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
            self._server = _Server((str(address[0]), int(address[1])), _handler(self))
            self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
            self._thread.start()
