"""Run -> names of the files it creates, kind-nk-<run>-<unit>-<attempt>-<n>, so every leftover file can be traced."""

from __future__ import annotations

import re
from itertools import count
from typing import Final

from nightkeep.formats.paimon.metadata.changelog import PLAIN_PREFIX
from nightkeep.formats.paimon.metadata.locations import DATA_PREFIX
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool
from nightkeep.model import Run, UnitKey
from nightkeep.model.run_names import file_stem

_CODEC: Final = re.compile(r"[a-z0-9_]+")
_EXTENSIONS: Final = {"zstd": "zst", "gzip": "gz", "bzip2": "bz2", "none": ""}
"""Codecs with an extension of another name (A/.../HadoopCompressionType.java)."""


def data_prefix(schema: PaimonSchema) -> str:
    """What names of new data files begin with. A prefix that is empty or names a folder is not followed: a sweep could
    not identify whose the files are."""
    own = schema.options.get("data-file.prefix", DATA_PREFIX)
    return own if PLAIN_PREFIX.fullmatch(own) else DATA_PREFIX


def extension_of(schema: PaimonSchema, file_format: str) -> str:
    """What names of new files end with, as Java's do (C/io/DataFilePathFactory.java).

    The codec is the one of `file.compression`, even if a level or a format has another one.
    """
    if not option_bool(schema, "file.suffix.include.compression"):
        return file_format
    codec = schema.options.get("file.compression", "zstd").lower()
    shown = _EXTENSIONS.get(codec, codec)
    return f"{shown}.{file_format}" if _CODEC.fullmatch(shown) else file_format


class PaimonNaming:
    """Fresh names for one attempt at one unit; no two calls give the same name."""

    def __init__(self, run: Run, key: UnitKey | None = None, *, mark: str | None = None) -> None:
        """`mark` ends the names of data files and states how they were written (clustering.layout_names)."""
        self._stem = file_stem(run, key)
        self._end = f"-{mark}" if mark else ""
        self._numbers = count()

    def data(self, prefix: str, extension: str) -> str:
        return f"{prefix}{self._next()}{self._end}.{extension}"

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
