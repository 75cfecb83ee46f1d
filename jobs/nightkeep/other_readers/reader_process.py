"""Another engine's Python -> fingerprints of the rows that it reads. Time and memory of the process are bounded.

The rows are hashed here, batch by batch, as they come: they are neither stored nor held.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import IOBase
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, cast

import pyarrow as pa

from nightkeep.errors import UsageError, brief
from nightkeep.interpreter import interpreter
from nightkeep.kernels.fingerprint import NOTHING, fingerprint
from nightkeep.limits import READER_MEMORY, READER_SECONDS
from nightkeep.model import Fingerprint
from nightkeep.model.check_values import ReaderName
from nightkeep.other_readers.normal_form import NoNormalForm, normal_form

READER_PYTHON: Final = "NIGHTKEEP_READER_PYTHON"
"""Environment variable: the Python of engines that are asked for without one."""


@dataclass(frozen=True, slots=True)
class OtherReader:
    """An engine, and the Python that has it."""

    name: ReaderName
    python: str

    @classmethod
    def parse(cls, text: str) -> OtherReader:
        """`NAME` or `NAME=PYTHON`. Raises UsageError for an unknown name."""
        name, _, python = text.partition("=")
        if name not in set(ReaderName):
            raise UsageError(f"--reader: expected one of {', '.join(ReaderName)}, found {name!r}")
        return cls(ReaderName(name), python or os.environ.get(READER_PYTHON) or interpreter())


@dataclass(frozen=True, slots=True)
class VersionRead:
    """What to read. `merged`: Paimon's merge-on-read, which shows what is not compacted yet."""

    format: str
    location: str
    version: int
    merged: bool = False


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """What a reader sees of a version, or why it sees nothing. `ended`: the reason is no limit of the engine's: it is
    missing, or its process ended."""

    rows: Fingerprint | None
    reason: str = ""
    ended: bool = False


class ReaderProcess:
    """At most one process at a time. A read starts it if there is none, or if an earlier read ended it."""

    def __init__(self, reader: OtherReader) -> None:
        self.name, self._reader = reader.name, reader
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with this object
        self.engine: str = reader.name
        """Its name, with its version once it has answered."""

    def __enter__(self) -> ReaderProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._end()
        self._errors.close()

    def read(self, request: VersionRead, schema: pa.Schema) -> RowsSeen:
        """The rows of a version in the types of `schema`."""
        try:
            process = self._process = self._process or self._started()
        except OSError as failure:
            return RowsSeen(
                None, f"expected a Python at {brief(self._reader.python)}, found none: {failure}", ended=True
            )
        seen: RowsSeen | None = None
        try:
            with _within(process, READER_SECONDS.value) as late:
                seen = self._answer(process, request, schema)
        except (OSError, ValueError) as failure:
            # What is read after the process ended is cut anywhere: Arrow's errors and JSON's are ValueErrors.
            why = f"its process was ended after {READER_SECONDS.value} seconds" if late.is_set() else self._how(failure)
            return RowsSeen(None, why, ended=True)
        finally:
            if seen is None:
                self._end()
        return seen

    def _started(self) -> subprocess.Popen[bytes]:
        command = [self._reader.python, str(_SCRIPT), self._reader.name, str(READER_MEMORY.value)]
        own = self._reader.python == sys.executable
        # Paths of this Python's packages are no other one's.
        environment = {name: value for name, value in os.environ.items() if own or name not in _OF_THIS_PYTHON}
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment
        )

    def _answer(self, process: subprocess.Popen[bytes], request: VersionRead, schema: pa.Schema) -> RowsSeen:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
        process.stdin.flush()
        head = _answer_in(process.stdout)
        if "missing" in head:
            return RowsSeen(
                None, brief(f"{self._reader.python} has no {self._reader.name}: {head['missing']}"), ended=True
            )
        self.engine = brief(head.get("engine") or head.get("by") or self.engine)
        if "unread" in head:
            return RowsSeen(None, brief(head["unread"]))
        rows, unformed = NOTHING, ""
        with pa.ipc.open_stream(cast(IOBase, process.stdout)) as stream:
            for batch in stream:
                # To the end in any case: the next answer comes after it.
                try:
                    rows = rows if unformed else rows + fingerprint(normal_form(batch, schema))
                except NoNormalForm as failure:
                    unformed = brief(str(failure))
        unread = brief(_answer_in(process.stdout).get("unread", "")) or unformed
        return RowsSeen(None, unread) if unread else RowsSeen(rows)

    def _how(self, failure: Exception) -> str:
        """How the process ended, with the last lines that it wrote."""
        assert self._process is not None
        self._process.kill()
        status = self._process.wait()
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TAIL_BYTES))
        tail = " ".join(self._errors.read().decode(errors="replace").split())
        return brief(f"its process ended with status {status}: {tail or failure}")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    _close(pipe)


_SCRIPT: Final = Path(__file__).with_name("engine_script.py")
_OF_THIS_PYTHON: Final = frozenset({"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"})
_TAIL_BYTES: Final = 500
_LINE_BYTES: Final = 1 << 16


def _answer_in(answers: IO[bytes]) -> Mapping[str, str]:
    line = answers.readline(_LINE_BYTES)
    if not line:
        raise ValueError("no answer")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:
        # What was not written yet has nobody to go to.
        return


@contextmanager
def _within(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """End the process after so many seconds. The event states whether that was necessary."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
