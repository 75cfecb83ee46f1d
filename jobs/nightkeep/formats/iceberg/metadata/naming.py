"""Run and unit -> names of new files. Every name contains the run's token, which identifies leftovers."""

from __future__ import annotations

import re
import uuid
from itertools import count
from typing import Final

from nightkeep.model import Run, UnitKey
from nightkeep.model.run_names import MARK, file_stem

RUN_PROPERTY: Final = "nightkeep.run"
"""The key of a snapshot's summary that names the run whose commit it is (model.run_names)."""
OPERATION_PROPERTY: Final = "nightkeep.operation"
"""The key of a snapshot's summary that names the operation, in snapshots that show the rows of their parent."""
MOVED_PROPERTY: Final = "nightkeep.respec"
"""The key of a snapshot's summary that has the spec to which it moved files of others."""

_STEM: Final = re.compile(rf"-{MARK}-[0-9a-f]{{16}}-([0-9a-f]{{8}})-")


class IcebergNaming:
    """Names for one attempt at one unit, or for one writer of changes. No two calls give the same name."""

    def __init__(self, run: Run, key: UnitKey | None = None, *, mark: str | None = None) -> None:
        """`mark` ends the names and states how the files were written (marks). It has no dash."""
        # Tasks of one unit run in parallel: a random part keeps their names apart.
        self._before, self._after = "", f"-{file_stem(run, key)}-{uuid.uuid4().hex[:8]}"
        self._after += f"-{mark}" if mark else ""
        self._numbers = count()

    @classmethod
    def of_writer(cls, number: int, attempt: int, operation: uuid.UUID) -> IcebergNaming:
        """Names as Flink's sink gives them (OutputFileFactory.java): `00000-1-<operation>-00001.parquet`."""
        naming = cls.__new__(cls)
        naming._before, naming._after = f"{number:05d}-{attempt}-{operation}-", ""
        naming._numbers = count(1)
        return naming

    def data(self, file_format: str = "parquet") -> str:
        return f"{self._next()}.{file_format}"

    def deletes(self, file_format: str = "parquet") -> str:
        """A file of position deletes, of format version 2, or of equality deletes."""
        return f"{self._next()}-deletes.{file_format}"

    def vectors(self) -> str:
        return f"{self._next()}-deletes.puffin"

    def _next(self) -> str:
        return f"{self._before}{next(self._numbers):05d}{self._after}"


def unit_token_of(name: str) -> str | None:
    """The token of the unit whose rows a run wrote to a data file of this name; None for files of others."""
    found = _STEM.search(name.rpartition("/")[2])
    return None if found is None else found[1]


def manifest_name(run: Run, snapshot_id: int, number: int) -> str:
    return f"{MARK}-{run.token}-{run.attempt}-{snapshot_id}-m{number}.avro"


def manifest_list_name(run: Run, snapshot_id: int) -> str:
    """The snapshot id comes first, as in names of the engines: tools look for it there."""
    return f"snap-{snapshot_id}-{MARK}-{run.token}-{run.attempt}.avro"


def staged_name(run: Run, snapshot_id: int) -> str:
    """The name of the staged snapshot. It does not end in `.metadata.json`, so no tool reads it as a version."""
    return f"{MARK}-{run.token}-{run.attempt}-{snapshot_id}.snapshot.json"
