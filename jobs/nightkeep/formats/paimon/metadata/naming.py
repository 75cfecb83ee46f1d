"""Run -> names of the files it creates, kind-nk-<run>-<unit>-<attempt>-<n>, so every leftover file can be traced."""

from __future__ import annotations

from itertools import count

from nightkeep.model import Run, UnitKey
from nightkeep.model.run_names import file_stem


class PaimonNaming:
    """Fresh names for one attempt at one unit; no two calls give the same name."""

    def __init__(self, run: Run, key: UnitKey | None = None, *, mark: str | None = None) -> None:
        """`mark` ends the names of data files and says how they were written (clustering.layout_names)."""
        self._stem = file_stem(run, key)
        self._end = f"-{mark}" if mark else ""
        self._numbers = count()

    def data(self, extension: str) -> str:
        return f"data-{self._next()}{self._end}.{extension}"

    def changelog(self, prefix: str, extension: str) -> str:
        return f"{prefix}{self._next()}.{extension}"

    def index(self) -> str:
        return f"index-{self._next()}"

    def manifest(self) -> str:
        return f"manifest-{self._next()}"

    def manifest_list(self) -> str:
        return f"manifest-list-{self._next()}"

    def index_manifest(self) -> str:
        return f"index-manifest-{self._next()}"

    def snapshot(self) -> str:
        """The name of a staged snapshot. It is not `snapshot-<id>`, so readers do not take it for one."""
        return f"staged-{self._next()}"

    def _next(self) -> str:
        return f"{self._stem}-{next(self._numbers)}"
