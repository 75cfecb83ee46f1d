"""Postgres as a process: a cluster of its own in a scratch folder, on a loopback port, by passwords only.

Postgres refuses to run as root, so that root starts it as another user.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from pwd import getpwnam

import psycopg2
from tests.drivers.toolchain import ToolMissing, free_port, wait_until_it_listens

USER = "nightkeep"
PASSWORD = "no-secret-at-all"
_SECONDS = 60.0
_DATABASES = count()
_NOT_YET = ("starting up", "not yet accepting connections")
"""What it says while it starts, and while it recovers from its death."""


class PostgresServer:
    """A running server."""

    def __init__(self, port: int, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.port = port
        self._start = start
        self._process = start()

    @contextmanager
    def away(self, seconds: float) -> Iterator[None]:
        """The server dies, and comes back after a while with what was committed. The context is left when it is
        back."""
        self._end(signal.SIGQUIT)
        back = threading.Timer(seconds, self._return)
        back.start()
        try:
            yield
        finally:
            back.join()
            _wait_until_it_answers(self)

    def stop(self) -> None:
        """Without waiting for those that are still connected."""
        self._end(signal.SIGINT)

    def _return(self) -> None:
        self._process = self._start()

    def _end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS / 6)
        self._process.kill()
        self._process.wait(_SECONDS)

    def database(self) -> str:
        """A new, empty database; its name."""
        name = f"lake{next(_DATABASES)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def uri(self, database: str, password: str = PASSWORD) -> str:
        """As SQLAlchemy has it."""
        return f"postgresql+psycopg2://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        connection = psycopg2.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname=database, connect_timeout=10
        )
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
        finally:
            connection.close()


@contextmanager
def serve_postgres() -> Iterator[PostgresServer]:
    """A server, ended with the context."""
    with tempfile.TemporaryDirectory(prefix="nightkeep-postgres-") as scratch:
        folder, log, secret = Path(scratch, "data"), Path(scratch, "log"), Path(scratch, "password")
        secret.write_text(PASSWORD)
        folder.mkdir()
        user = _other_user()
        if user is not None:
            for path in (Path(scratch), folder, secret):
                shutil.chown(path, user)
        made = [_program("initdb"), "-D", str(folder), "-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}", "-N"]
        environment = {**os.environ, "LC_ALL": "C"}
        subprocess.run(made, check=True, capture_output=True, timeout=_SECONDS, cwd=scratch, env=environment, user=user)
        port = free_port()
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=100")
        command = [_program("postgres"), "-D", str(folder), "-p", str(port)]
        for setting in settings:
            command += ["-c", setting]

        def start() -> subprocess.Popen[bytes]:
            with log.open("a") as sink:
                process = subprocess.Popen(
                    command, stdout=sink, stderr=subprocess.STDOUT, cwd=scratch, env=environment, user=user
                )
            try:
                wait_until_it_listens(process, port, log)
            except RuntimeError:
                process.kill()
                raise
            return process

        server = PostgresServer(port, start)
        try:
            _wait_until_it_answers(server)
            yield server
        finally:
            server.stop()


def _wait_until_it_answers(server: PostgresServer) -> None:
    """It listens before it lets anybody in."""
    for attempt in range(100):
        try:
            server.execute(f"SELECT pg_sleep({0 if attempt == 0 else 0.01})")
            return
        except psycopg2.OperationalError as failure:
            if not any(said in str(failure) for said in _NOT_YET):
                raise
            time.sleep(0.05)
    raise RuntimeError("postgres: expected it to let us in, found that it is still starting up")


def _other_user() -> str | None:
    """Who runs it where this process is root's."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return getpwnam(name).pw_name
    raise ToolMissing("postgres: no user but root to run it")


def _program(name: str) -> str:
    """Debian keeps the programs of each version in a folder of its own, which is not on PATH."""
    installed = [str(path.parent) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))]
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(reversed(installed)))
    if found is None:
        raise ToolMissing(f"{name}: not on PATH; the tests of catalogs need it (Debian and Ubuntu: postgresql)")
    return found
