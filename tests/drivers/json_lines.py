"""A child process that answers one JSON line per JSON line. Every wait is bounded; a late child is ended."""

import contextlib
import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_STOP_SECONDS = 10.0


class EngineError(RuntimeError):
    """The engine failed a request; `kind` and `root` are its exception types, its stack is a note.

    `condition` is the engine's own name of the error, such as Spark's DELTA_TABLE_NOT_FOUND; "" if it has none.
    """

    def __init__(self, verb: str, error: Mapping[str, str]) -> None:
        super().__init__(f"{verb}: {error['class']}: {error['message']} (root: {error['root_message']})")
        self.verb = verb
        self.kind = error["class"]
        self.message = error["message"]
        self.root = error["root_class"]
        self.root_message = error["root_message"]
        self.condition = error.get("condition", "")
        self.add_note(error["trace"])


class EngineStopped(RuntimeError):
    """The engine process ended, or did not answer in time; the message carries the end of its log."""


class JsonLines:
    """Owns one child process. Requests are answered in order; not for use by several threads at once."""

    def __init__(
        self, command: Sequence[str], log: Path, *, timeout: float, env: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        self._timeout = timeout
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=None if env is None else dict(env),
            )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def request(self, verb: str, fields: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """The result. EngineError if the engine failed, EngineStopped if it did not answer in time."""
        seconds = self._timeout if timeout is None else timeout
        self._send(verb, fields)
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self._process.kill()
            self.stop()
            raise EngineStopped(f"{verb}: no reply in {seconds:g} s; log ends:\n{self._tail()}") from None
        if not line:
            self.stop()
            raise EngineStopped(f"{verb}: the process ended without a reply; log ends:\n{self._tail()}")
        reply = json.loads(line)
        if "error" in reply:
            raise EngineError(verb, reply["error"])
        return reply["result"]

    def stop(self) -> None:
        """Ends the process: closed input first, then a kill. Idempotent."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_SECONDS)
        self._reader.join(_STOP_SECONDS)
        self._process.stdout.close()

    def _send(self, verb: str, fields: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        text = json.dumps({"verb": verb, **fields}, allow_nan=False)
        try:
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise EngineStopped(f"{verb}: the process is not running; log ends:\n{self._tail()}") from None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


class Engine:
    """A driver: one child process and a folder of its own, both gone after `stop`. Its verbs are requests."""

    _scratch: tempfile.TemporaryDirectory[str]
    _lines: JsonLines

    def _folder(self, prefix: str) -> str:
        # Children of a Spark that was ended by force may still write there.
        self._scratch = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
        return self._scratch.name

    def _start(self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> None:
        self._lines = JsonLines(command, Path(self._scratch.name) / "log", timeout=timeout, env=env)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._lines.stop()
        self._scratch.cleanup()

    @property
    def pid(self) -> int:
        return self._lines.pid
