"""A loopback proxy before an Azure server that fails requests as told, makes pages small and forgets conditions.

What it changes of a request it signs anew: the server checks signatures, as Azure does.
"""

from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlencode

from tests.drivers.azure_server import signed
from tests.drivers.fault_proxy import Answer, FaultProxy, Request


class AzureFaults(FaultProxy):
    """A status of 503 says ServerBusy."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._page: int | None = None
        self._is_forgetful = False

    def pages(self, most: int) -> None:
        """Listings come in pages of so many blobs."""
        self._page = most

    def forget_conditions(self) -> None:
        """Drops `If-None-Match` of writes."""
        self._is_forgetful = True

    def forward(self, request: Request) -> Answer:
        changed = request
        if self._page is not None and "comp=list" in request.query:
            asked = [*parse_qsl(request.query, keep_blank_values=True), ("maxresults", str(self._page))]
            changed = replace(changed, query=urlencode(asked, quote_via=quote, safe=""))
        if self._is_forgetful and request.method == "PUT":
            kept = {name: value for name, value in request.headers.items() if name.lower() != "if-none-match"}
            changed = replace(changed, headers=kept)
        return super().forward(changed if changed is request else signed(changed))

    def failure(self, status: int) -> Answer:
        code = "ServerBusy" if status == 503 else "AuthorizationFailure" if status == 403 else "InternalError"
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
        return Answer(status, {"Content-Type": "application/xml", "x-ms-error-code": code}, body.encode())
