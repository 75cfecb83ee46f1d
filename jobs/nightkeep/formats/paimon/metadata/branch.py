"""An address -> the table's folder and branch; a store -> the store as the branch sees it.

A branch has schemas, snapshots, tags, changelogs and consumers of its own in `branch/branch-<name>/`, and shares every
other folder with the table: A/catalog/Identifier.java, C/utils/BranchManager.java.
"""

from __future__ import annotations

from typing import Final

from nightkeep.errors import AddressError, RefusedTable
from nightkeep.formats.paimon.metadata.snapshot_files import numbered
from nightkeep.storage import MovedFolders, Storage

MAIN_BRANCH: Final = "main"
MARK: Final = "$branch_"
"""Between a table's location and the name of a branch, as in Paimon's own names of tables."""
OWN_FOLDERS: Final = frozenset({"schema", "snapshot", "tag", "changelog", "consumer"})


def location_and_branch(location: str) -> tuple[str, str]:
    """The location of a table's folder, and the name of a branch, `main` by default.

    Raises AddressError for a name that Paimon gives no branch, and for one that is no name of a folder.
    """
    folder, mark, branch = location.rpartition(MARK)
    if not mark or "/" in branch:
        return location, MAIN_BRANCH
    if not branch.strip() or branch in (".", "..") or "\\" in branch or branch.isdigit():
        raise AddressError(f"{location}: expected the name of a branch after {MARK}, found {branch!r}")
    return folder, branch


def as_branch(storage: Storage, branch: str) -> Storage:
    """The store of a table's folder as one of its branches sees it. Raises AddressError if there is no such branch."""
    if branch == MAIN_BRANCH:
        return storage
    home = f"branch/branch-{branch}"
    if not any(numbered(stored.name, "schema-") is not None for stored in storage.list(f"{home}/schema")):
        raise AddressError(f"{storage.root}: expected a branch {branch} of the table, found no schema in {home}")
    return MovedFolders(storage, OWN_FOLDERS, home)


def refuse_branch_sweep(table: str, location: str) -> None:
    """Raises RefusedTable for a branch: its files are among those of the table, and of all other branches."""
    folder, branch = location_and_branch(location)
    if branch != MAIN_BRANCH:
        advice = f"name the table, paimon:{folder}: every branch and tag keeps its files then"
        raise RefusedTable(table, f"branch {branch} is not swept, expired or restored on its own", advice)
