"""AWS Glue as moto's server has it, in a thread, on a loopback port.

moto takes any update. Glue takes one that names a version (`VersionId`) only if it is the newest, which is added here.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer

_ONE_AT_A_TIME = threading.Lock()
_update = GlueResponse.update_table


def _update_newest(response: GlueResponse) -> Any:
    stated = response.parameters
    with _ONE_AT_A_TIME:
        table = response.glue_backend.get_table(stated["DatabaseName"], stated["TableInput"]["Name"])
        newest = table.as_dict()["VersionId"]
        if stated.get("VersionId", newest) != newest:
            raise JsonRESTError(
                "ConcurrentModificationException", "Update table failed due to concurrent modifications."
            )
        return _update(response)


@contextmanager
def serve_glue() -> Iterator[str]:
    """The endpoint of a server, which ends with the context."""
    with patch.object(GlueResponse, "update_table", _update_newest):
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield f"http://{host}:{port}"
        finally:
            server.stop()
