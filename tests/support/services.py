"""A program that keeps running beside a test, ended with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def process(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with all its children, which are ended with it."""
    with (folder / f"{Path(command[0]).name}-{command[-1]}.log".replace("/", "_")).open("w") as log:
        started = subprocess.Popen(
            command, env=environ, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(20)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(started.pid, signal.SIGKILL)
