"""Requests -> pypaimon 2.1.0 in an environment of its own -> its answers. A second reader, unlike Java's.

It cannot read 64-bit deletion vectors, its merged reads lose nanoseconds, and what it writes never counts -D rows
in a file's metadata.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.drivers.json_lines import Engine
from tests.drivers.paimon_values import Row, Scan, Scanned, Table, given
from tests.drivers.toolchain import ToolMissing, alone, cache_dir, python_environment

_REPOSITORY = Path(__file__).parents[2]
_REQUIREMENTS = Path(__file__).parent / "pypaimon-requirements.txt"
_INSTALL_SECONDS = 900
_NANOS = re.compile(r"(?<=T\d\d:\d\d:\d\d\.)(\d{6})\d{3}$")


class PyPaimon(Engine):
    """One process of pypaimon's environment, which uv builds on first use."""

    def __init__(self, *, timeout: float = 120.0) -> None:
        command = [str(pypaimon_python()), "-m", "tests.drivers.pypaimon_server"]
        scratch = self._folder("nightkeep-pypaimon-")
        self._start(command, timeout=timeout, env=python_environment(scratch))

    def read(self, table: Table, scan: Scan | None = None) -> Scanned:
        """Filters and options as for Java; row_kinds is not known here."""
        fields = {"table": str(Path(table).absolute()), **given(scan or Scan())}
        return Scanned.of(self._lines.request("read", fields))

    def read_arrow(self, table: Table) -> tuple[int, float]:
        """The number of rows, and the CPU seconds that pypaimon takes to make an Arrow table of them."""
        answer: dict[str, Any] = self._lines.request("read_arrow", {"table": str(Path(table).absolute())})
        return int(answer["rows"]), float(answer["cpu_seconds"])

    def write(self, table: Table, rows: Iterable[Row]) -> int:
        """One commit; returns the latest snapshot id. Kinds other than +I need a table with rowkind.field."""
        fields = {"table": str(Path(table).absolute()), "rows": [list(row) for row in rows]}
        result: dict[str, Any] = self._lines.request("write", fields)
        return int(result["snapshot"])


def pypaimon_python() -> Path:
    return locked_environment("pypaimon", _REQUIREMENTS) / "bin" / "python"


def cut_to_micros(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row with its TIMESTAMP(9) values cut, as pypaimon does where it merges and not where it does not."""
    return tuple(_NANOS.sub(r"\g<1>000", value) if isinstance(value, str) else value for value in row)


def locked_environment(name: str, *requirements: Path) -> Path:
    """The virtual environment in the cache, named by its locks and Python; built by uv if it is not there."""
    locks = b"".join(file.read_bytes() for file in requirements)
    lock = hashlib.sha256(locks + sys.version.encode()).hexdigest()[:20]
    place = cache_dir() / f"{name}-{lock}"
    with alone(place.name):
        if not (place / "ready").exists():
            _build(place, *requirements)
    return place


def _build(place: Path, *requirements: Path) -> None:
    uv, python = _uv(), str(place / "bin" / "python")
    _run([uv, "venv", "-q", "--allow-existing", "--python", sys.executable, str(place)])
    _run([uv, "pip", "sync", "-q", "--require-hashes", "--python", python, *map(str, requirements)])
    (place / "ready").touch()


def _uv() -> str:
    own = _REPOSITORY / ".uv" / "bin" / "uv"
    found = os.environ.get("NIGHTKEEP_UV") or (str(own) if own.exists() else shutil.which("uv"))
    if found is None:
        raise ToolMissing(f"uv: expected $NIGHTKEEP_UV, {own} or uv on PATH; `make` installs it")
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}:\n{done.stderr[-4000:]}")
