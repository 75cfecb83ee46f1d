"""An S3 server as a process: versitygw over a folder, on a loopback port. Objects are plain files below it.

Its conditional writes are atomic, which those of in-memory imitations are not; the tests prove it.
"""

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.drivers.go_programs import go_program
from tests.drivers.toolchain import free_port, wait_until_it_listens

ACCESS_KEY = "nightkeep-tests"
SECRET_KEY = "no-secret-at-all"
REGION = "us-east-1"

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_VERSION = "v1.8.0"
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Bucket:
    """A bucket of a test: `uri` without a slash at its end, and the folder that its objects are files of."""

    name: str
    folder: Path

    @property
    def uri(self) -> str:
        return f"s3://{self.name}"


class S3Server:
    """A running server; `log` is what it says, which matters when it fails."""

    def __init__(self, endpoint: str, folder: Path, log: Path, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._process = start()
        self.endpoint = endpoint
        self.log = log
        self._folder = folder
        self._numbers = count(1)

    def bucket(self) -> Bucket:
        """A new one."""
        name = f"bucket-{next(self._numbers)}"
        bucket = Bucket(name, self._folder / name)
        bucket.folder.mkdir()
        return bucket

    @contextmanager
    def away(self, seconds: float) -> Iterator[None]:
        """The server is down, and comes back after a while, at the same address and with the same objects. The context
        is left when it is back."""
        self.end()
        back = threading.Timer(seconds, self._return)
        back.start()
        try:
            yield
        finally:
            back.join()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The server takes requests and answers none before the context is left."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(_START_SECONDS)

    def _return(self) -> None:
        self._process = self._start()

    @property
    def folder(self) -> Path:
        """That of the buckets."""
        return self._folder

    def environment(self, endpoint: str | None = None, *, user: str = ACCESS_KEY) -> Mapping[str, str]:
        """What a client finds in its environment; `endpoint` is that of a proxy, if any. `user` is one without any
        right but those that policies of buckets give."""
        return {
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
        }


@contextmanager
def serve_s3(requests: Path | None = None, *, users: Sequence[str] = ()) -> Iterator[S3Server]:
    """A server with a folder of its own, ended with the context. It adds a line for each request to `requests`. All
    `users` have the secret of the tests."""
    program_file = go_program(_MODULE, _VERSION)
    with tempfile.TemporaryDirectory(prefix="nightkeep-s3-") as scratch:
        folder, log = Path(scratch, "buckets"), Path(scratch, "log")
        folder.mkdir()
        port = free_port()
        logging = [] if requests is None else ["--access-log", str(requests)]
        people = Path(scratch, "users")
        if users:
            people.mkdir()
            logging += ["--iam-dir", str(people)]
        options = ["--quiet", "--port", f"127.0.0.1:{port}", *logging]
        command = [str(program_file), *options, "posix", str(folder)]
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}

        def start() -> subprocess.Popen[bytes]:
            with log.open("a") as sink:
                process = subprocess.Popen(command, env={**os.environ, **keys}, stdout=sink, stderr=subprocess.STDOUT)
            wait_until_it_listens(process, port, log)
            return process

        server = S3Server(f"http://127.0.0.1:{port}", folder, log, start)
        try:
            for user in users:
                asked = ["admin", "--access", ACCESS_KEY, "--secret", SECRET_KEY, "--endpoint-url", server.endpoint]
                made = ["create-user", "--access", user, "--secret", SECRET_KEY, "--role", "user"]
                subprocess.run([str(program_file), *asked, *made], check=True, stdout=subprocess.DEVNULL)
            yield server
        finally:
            server.end()
