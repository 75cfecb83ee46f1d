"""A loopback proxy before an Iceberg REST catalog that fails requests as told."""

import json

from tests.drivers.fault_proxy import Answer, FaultProxy

COMMIT = r"POST /v1/namespaces/[^/]+/tables/[^/]+$"
"""The request of a commit to a table, as method and path."""

_TYPES = {409: "CommitFailedException", 404: "NoSuchTableException"}


class RestFaults(FaultProxy):
    """Failures are told as the REST catalog's specification has them."""

    def failure(self, status: int) -> Answer:
        error = {"message": "injected", "type": _TYPES.get(status, "ServerError"), "code": status}
        return Answer(status, {"Content-Type": "application/json"}, json.dumps({"error": error}).encode())
