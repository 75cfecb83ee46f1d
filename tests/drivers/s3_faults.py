"""A loopback proxy before an S3 server that fails requests as told, makes pages small and forgets conditions.

What it changes of a request it signs anew: the server checks signatures, as every S3 does.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from xml.sax.saxutils import escape, unescape

from tests.drivers.fault_proxy import Answer, FaultProxy, Request, asked_of
from tests.drivers.s3_server import ACCESS_KEY, REGION, SECRET_KEY

_OBJECT = re.compile(rb"<Object>.*?<Key>(.*?)</Key>.*?</Object>", re.DOTALL)


class S3Faults(FaultProxy):
    """A status of 503 says SlowDown."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._locked: dict[str, int] = {}
        self._page: int | None = None
        self._forgotten: frozenset[str] = frozenset()
        self._spelling: tuple[bytes, bytes] | None = None

    def pages(self, most: int) -> None:
        """Listings come in pages of so many keys."""
        self._page = most

    def forget_conditions(self, *names: str) -> None:
        """Drops `If-None-Match` of writes, or the headers of these names, as stores do that do not know them."""
        self._forgotten = frozenset(names or ("if-none-match",))

    def respell(self, key: str, other: str) -> None:
        """Listings have another key in place of one; it is written as XML."""
        self._spelling = (f"<Key>{key}</Key>".encode(), f"<Key>{other}</Key>".encode())

    def lock(self, key: str, *, times: int) -> None:
        """A key that is not deleted so many times, and said to be denied, whatever else a request deletes."""
        self._locked[key] = times

    def forward(self, request: Request) -> Answer:
        changed = request
        if self._page is not None and "list-type=2" in request.query:
            changed = replace(changed, query=_with_page(request.query, self._page))
        if self._forgotten and request.method in ("PUT", "POST"):
            kept = {name: value for name, value in request.headers.items() if name.lower() not in self._forgotten}
            changed = replace(changed, headers=kept)
        denied: list[str] = []
        if self._locked and request.method == "POST" and request.query == "delete":
            changed, denied = self._without_locked(changed)
            if not _OBJECT.search(changed.body):
                return _with_denied(self.failure(200), denied)
        answer = super().forward(changed if changed is request else signed(changed))
        if self._spelling is not None and "list-type=2" in request.query:
            answer = replace(answer, body=answer.body.replace(*self._spelling))
        return _with_denied(answer, denied)

    def failure(self, status: int) -> Answer:
        if status == 200:
            return Answer(200, {"Content-Type": "application/xml"}, b"<DeleteResult></DeleteResult>")
        code = "SlowDown" if status == 503 else "AccessDenied" if status == 403 else "InternalError"
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
        return Answer(status, {"Content-Type": "application/xml", "Retry-After": "0"}, body.encode())

    def _without_locked(self, request: Request) -> tuple[Request, list[str]]:
        denied: list[str] = []

        def keep(match: re.Match[bytes]) -> bytes:
            key = unescape(match[1].decode(), {"&quot;": '"', "&apos;": "'"})
            if self._locked.get(key, 0) == 0:
                return match[0]
            self._locked[key] -= 1
            denied.append(key)
            return b""

        body = _OBJECT.sub(keep, request.body)
        sums = {name: value for name, value in request.headers.items() if not name.lower().startswith("x-amz-checksum")}
        sums = {name: value for name, value in sums.items() if name.lower() not in ("content-md5", "content-length")}
        sums["Content-MD5"] = base64.b64encode(hashlib.md5(body).digest()).decode()
        return replace(request, body=body, headers=sums), denied


def put_folder(endpoint: str, bucket: str, key: str) -> None:
    """An empty object whose name ends in `/`, as consoles and Hadoop make them for folders."""
    headers = {"Host": urlsplit(endpoint).netloc, "Content-Length": "0"}
    answer = asked_of(endpoint, signed(Request("PUT", f"/{bucket}/{quote(key)}/", "", headers, b"")))
    if answer.status != 200:
        raise RuntimeError(f"{key}/: expected status 200, found {answer.status}: {answer.body!r}")


def _with_page(query: str, most: int) -> str:
    asked = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "max-keys"]
    return urlencode([*asked, ("max-keys", str(most))], quote_via=quote, safe="")


def _with_denied(answer: Answer, keys: list[str]) -> Answer:
    errors = "".join(
        f"<Error><Key>{escape(key)}</Key><Code>AccessDenied</Code><Message>locked</Message></Error>" for key in keys
    )
    return replace(answer, body=answer.body.replace(b"</DeleteResult>", errors.encode() + b"</DeleteResult>"))


def signed(request: Request) -> Request:
    """With a signature of version 4 for what the request has become (AWS: create a signed AWS API request)."""
    now = datetime.now(UTC)
    day, stamp = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(request.body).hexdigest()
    ours = {"authorization", "x-amz-date", "x-amz-content-sha256"}
    headers = {name: value for name, value in request.headers.items() if name.lower() not in ours}
    headers |= {"x-amz-date": stamp, "x-amz-content-sha256": digest}
    lines = {name.lower(): value.strip() for name, value in headers.items()}
    names = sorted(name for name in lines if name == "host" or name.startswith("x-amz-"))
    asked = sorted(parse_qsl(request.query, keep_blank_values=True))
    canonical = "\n".join(
        (
            request.method,
            request.path,
            urlencode(asked, quote_via=quote, safe="-_.~"),
            *(f"{name}:{lines[name]}" for name in names),
            "",
            ";".join(names),
            digest,
        )
    )
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (day, REGION, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}"
    headers["Authorization"] = f"{credential}, SignedHeaders={';'.join(names)}, Signature={signature}"
    return replace(request, headers=headers)
