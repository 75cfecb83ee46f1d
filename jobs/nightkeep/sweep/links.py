"""Needed files that were not listed, as a link is on the way to them: a listing follows none, engines do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from nightkeep.errors import EvidenceError
from nightkeep.storage import LocalStorage
from nightkeep.sweep.sets import Counted
from nightkeep.territory import Territory

_EXAMPLE: Final = re.compile(r"(.*) (?:is not there|has [0-9]+ bytes, metadata says [0-9]+)", re.DOTALL)


def require_folders(counted: Counted, territory: Territory) -> None:
    """Raises EvidenceError naming a symbolic link where each example of a missing or resized file lies behind one.

    Nothing is said where one of them does not: that one is missing, whatever the others are.
    """
    if not isinstance(territory.storage, LocalStorage):
        return
    root = Path(territory.storage.root)
    links = [next(_links(root, example), None) for example in counted.examples]
    if links and None not in links:
        expected = "the files of the table themselves"
        found = "a symbolic link, which is not followed: move the files here, or mount their folder in the link's place"
        raise EvidenceError(f"{territory.table.name}: {root}/{links[0]}", expected, found)


def _links(root: Path, example: str) -> Iterator[str]:
    """Links on the path to a file, from the table's folder on."""
    name = PurePosixPath(found[1] if (found := _EXAMPLE.fullmatch(example)) else example)
    for path in (*reversed(name.parents), name):
        if path.parts and (root / path).is_symlink():
            yield str(path)
