"""Needed files that were not listed -> an error if a symbolic link hides them. A listing follows no link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from nightkeep.errors import EvidenceError
from nightkeep.protocol.table_files import TableFiles
from nightkeep.retention.orphans.sets import SetCounts
from nightkeep.storage import LocalStorage


def require_folders(counted: SetCounts, table_files: TableFiles) -> None:
    """Raises EvidenceError, naming a link, if every example of a missing or resized file is behind a symbolic link.

    Returns if one example is not: that file is really missing or resized.
    """
    if not isinstance(table_files.storage, LocalStorage):
        return
    root = Path(table_files.storage.root)
    links = [next(_links(root, example.name), None) for example in counted.examples]
    if links and None not in links:
        expected = "the files of the table themselves"
        found = "a symbolic link, which is not followed: move the files here, or mount their folder in the link's place"
        raise EvidenceError(f"{table_files.table.name}: {str(root).rstrip('/')}/{links[0]}", expected, found)


def _links(root: Path, name: str) -> Iterator[str]:
    """Symbolic links on the path to a file, from the table's folder down."""
    path_to = PurePosixPath(name)
    for path in (*reversed(path_to.parents), path_to):
        if path.parts and (root / path).is_symlink():
            yield str(path)
