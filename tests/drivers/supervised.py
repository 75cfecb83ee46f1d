"""A long-running program beside the tests, started again whenever it ends, as a container of `unless-stopped` is.

Every process that it starts inherits a mark in its environment, by which all of them are found and ended: those too
whose parent was killed.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil  # type: ignore[import-untyped]

MARK = "NIGHTKEEP_TESTS_SERVICE"
AGAIN_SECONDS = 1.0
"""Between the end of a program and its next start."""
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.25


class Service:
    """One program in a folder of its own. `starts` counts how often it was started."""

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        self.name, self.folder, self.starts = name, folder, 0
        folder.mkdir(parents=True, exist_ok=True)
        self._command, self._mark = list(command), uuid4().hex
        self._environ = {**environ, MARK: self._mark}
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._watch = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        self._launch()
        self._watch.start()

    def family(self) -> list[psutil.Process]:
        """The program and whatever it started, alive."""
        return [each for each in marked(self._mark) if _is_alive(each)]

    def kill(self) -> list[str]:
        """SIGKILL for the program and all that it started, as when its machine dies. The commands that were killed."""
        return kill(self.family())

    def stop(self) -> None:
        """End it for good: SIGTERM, and SIGKILL after a while for what is left."""
        self._stopped.set()
        if self._watch.ident is not None:
            self._watch.join(_STOP_SECONDS)
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        kill(self.family())
        if self._process is not None:
            self._process.wait(_STOP_SECONDS)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def tail(self, characters: int = 3000) -> str:
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    def _launch(self) -> None:
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                self._command,
                env=self._environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def _keep(self) -> None:
        while not self._stopped.wait(_LOOK_SECONDS):
            if self._process is not None and self._process.poll() is not None:
                if self._stopped.wait(AGAIN_SECONDS):
                    return
                self._launch()


def marked(mark: str) -> list[psutil.Process]:
    """Every process with the mark in its environment, or below one that has it."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                found |= {each.pid: each for each in (process, *process.children(recursive=True))}
    return list(found.values())


def kill(processes: Sequence[psutil.Process]) -> list[str]:
    """SIGKILL by their ids; their commands, once they have ended."""
    killed = []
    for process in processes:
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            process.kill()
            killed.append(command)
    psutil.wait_procs(processes, timeout=_STOP_SECONDS)
    return killed


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def until(ready: Callable[[], object], what: str, seconds: float, *, every: float = 0.2) -> None:
    """Wait for a condition, within a bound."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected {what} within {seconds:g} s, found none")
        time.sleep(every)
