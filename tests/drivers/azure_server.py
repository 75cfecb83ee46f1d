"""Azurite as a process: the Blob side of Azure Storage, on a loopback port, with an account of the tests.

Its conditional writes are atomic: it does one thing at a time; the tests prove it. It has no DFS side, which Hadoop's
connector needs.
"""

import base64
import hmac
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from urllib.parse import parse_qsl

from tests.drivers.fault_proxy import Request, asked_of
from tests.drivers.toolchain import alone, cache_dir, free_port, program, wait_until_it_listens

ACCOUNT = "nightkeep"
ACCOUNT_KEY = base64.b64encode(b"no secret at all").decode()

_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_LOCKED = Path(__file__).parent / "azurite"
_VERSION = "2021-12-02"
_INSTALL_SECONDS = 900
_STOP_SECONDS = 60.0


@dataclass(frozen=True)
class AzureContainer:
    """A container of a test: `uri` without a slash at its end."""

    name: str

    @property
    def uri(self) -> str:
        return f"abfss://{self.name}@{ACCOUNT}.dfs.core.windows.net"


class AzureServer:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._numbers = count(1)

    def container(self) -> AzureContainer:
        """A new one."""
        found = AzureContainer(f"container-{next(self._numbers)}")
        answer = asked_of(
            self.endpoint, signed(Request("PUT", f"/{ACCOUNT}/{found.name}", "restype=container", {}, b""))
        )
        if answer.status != 201:
            raise RuntimeError(f"{found.name}: expected status 201, found {answer.status}: {answer.body!r}")
        return found

    def environment(self, endpoint: str | None = None) -> Mapping[str, str]:
        """What a client finds in its environment; `endpoint` is that of a proxy, if any."""
        place = endpoint or self.endpoint
        return {"AZURE_STORAGE_ENDPOINT": f"{place}/{ACCOUNT}", "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY}


def signed(request: Request) -> Request:
    """With a signature for what the request has become (Azure Storage: authorize with Shared Key)."""
    now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    kept = {name: value for name, value in request.headers.items() if name.lower() not in ("authorization", "date")}
    headers = {"x-ms-version": _VERSION} | kept | {"x-ms-date": now}
    lines = {name.lower(): value.strip() for name, value in headers.items()}
    plain = ["" if name == "content-length" and lines.get(name) == "0" else lines.get(name, "") for name in _SIGNED]
    own = [f"{name}:{lines[name]}" for name in sorted(lines) if name.startswith("x-ms-")]
    asked = sorted(parse_qsl(request.query, keep_blank_values=True))
    place = [f"/{ACCOUNT}{request.path}", *(f"{name.lower()}:{value}" for name, value in asked)]
    text = "\n".join([request.method, *plain, *own, *place])
    signature = base64.b64encode(hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), sha256)).decode()
    return replace(request, headers={**headers, "Authorization": f"SharedKey {ACCOUNT}:{signature}"})


@contextmanager
def serve_azure() -> Iterator[AzureServer]:
    """A server with a folder of its own, ended with the context."""
    installed = _installed()
    with tempfile.TemporaryDirectory(prefix="nightkeep-azure-") as scratch:
        port, log = free_port(), Path(scratch, "log")
        program_file = installed / "node_modules/azurite/dist/src/blob/main.js"
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", scratch]
        quiet = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        command = [program("node", "nodejs"), str(program_file), *place, *quiet]
        environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}
        with log.open("w") as sink:
            process = subprocess.Popen(command, cwd=scratch, env=environment, stdout=sink, stderr=subprocess.STDOUT)
        try:
            wait_until_it_listens(process, port, log)
            yield AzureServer(port)
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


def _installed() -> Path:
    """The folder in the cache into which npm has installed what is locked, for this lock."""
    digest = sha256((_LOCKED / "package-lock.json").read_bytes()).hexdigest()[:20]
    folder = cache_dir() / "npm" / digest
    with alone("azurite"):
        if folder.exists():
            return folder
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            place = Path(shutil.copytree(_LOCKED, Path(scratch, "azurite")))
            _install(place)
            place.rename(folder)
    return folder


def _install(place: Path) -> None:
    done = subprocess.run(
        [program("npm", "npm"), "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"npm could not install Azurite:\n{(done.stdout + done.stderr)[-4000:]}")
