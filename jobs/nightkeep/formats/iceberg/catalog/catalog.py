"""Catalog name and table name -> the table's current metadata, and commits to it. Every load asks the catalog.

A handle holds names, and the way to the table's bucket if the catalog's settings give one: tasks on other machines
need it. All other credentials stay in the environment and in the `.pyiceberg.yaml` of the process that opens the
catalog.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.utils.config import Config

from nightkeep.errors import AddressError, EvidenceError, RefusedTable
from nightkeep.formats.iceberg.catalog import metadata_swap, update_commit
from nightkeep.formats.iceberg.catalog.claims import Claim, bounds, claims, located
from nightkeep.formats.iceberg.catalog.failures import asking
from nightkeep.formats.iceberg.catalog.near_names import near_table
from nightkeep.formats.iceberg.catalog.opening import connect, pointers_of
from nightkeep.formats.iceberg.catalog.rest_catalog import served
from nightkeep.formats.iceberg.catalog.stores import require_one_store, store_of
from nightkeep.formats.iceberg.metadata.branches import as_branch, location_and_branch, tip
from nightkeep.formats.iceberg.metadata.locations import MACHINE, name_in
from nightkeep.formats.iceberg.metadata.remove_snapshots import RemovedSnapshots, without
from nightkeep.formats.iceberg.metadata.table_metadata import MAIN, Raw, content, decode, head
from nightkeep.metastores.settings import settings_of
from nightkeep.model.dotted import join_name, split_name
from nightkeep.model.metastore_table import catalog_and_name, metastore_table
from nightkeep.redaction import learn
from nightkeep.storage import LocalStorage, Storage, within
from nightkeep.storage.objects.properties import gives_keys, relevant, without_keys
from nightkeep.storage.objects.renewed import Options

_OPENED: Final[dict[tuple[int, str, str], Catalog]] = {}
"""Catalogs of this process, by its id (a fork shares no connections), name and settings."""


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table of a catalog, or one of its branches: `identifier` is the levels of its namespace, then its name.
    Picklable."""

    catalog: str
    identifier: tuple[str, ...]
    storage: Storage
    branch: str = MAIN

    def __str__(self) -> str:
        name = f"{self.catalog}.{join_name(self.identifier)}"
        return name if self.branch == MAIN else f"{name}$branch_{self.branch}"

    def load(self) -> tuple[Raw, str]:
        """The table's current metadata as raw JSON, and its location; "" if the catalog does not give the location.

        In the metadata of a branch main is that branch: it is for reading. Raises AddressError if there is no such
        table or branch, Unreachable, MissingFile, CorruptMetadata.
        """
        raw, location = self._loaded()
        return as_branch(raw, self.branch, subject=str(self)), location

    def _loaded(self) -> tuple[Raw, str]:
        raw, location = self.answer()
        if raw is None:
            raw = decode(self.storage.read(name_in(self.storage, location)), subject=location)
        if "view-uuid" in raw:
            raise AddressError(f"{self}: expected a table, found a view")
        require_one_store(self.storage, raw, location)
        return raw, location

    def whole(self) -> tuple[Raw, str]:
        """As `load`, but read from the metadata file itself. Callers may treat files that it does not name as unused.

        A server's answer may leave out parts of the file. Raises as `load`, and EvidenceError if answer and file
        differ in snapshots, branches or tags, RefusedTable for a branch: its files are among those of the table.
        """
        if self.branch != MAIN:
            feature = f"branch {self.branch} is not swept, expired or restored on its own"
            raise RefusedTable(str(self), feature, "name the table: every branch and tag keeps its files then")
        raw, location = self._loaded()
        if not location or not isinstance(open_catalog(self.catalog), RestCatalog):
            return raw, location
        written = decode(self.storage.read(name_in(self.storage, location)), subject=location)
        served, there = content(raw, subject=str(self)), content(written, subject=location)
        if served != there:
            expected = f"the snapshots, branches and tags of {location}: {len(there)} in all"
            example = min(map(str, served ^ there))
            raise EvidenceError(f"{self}: the catalog's answer", expected, f"{len(served)}, not alike in {example}")
        return written, location

    def answer(self) -> tuple[Raw | None, str]:
        """The catalog's own answer: metadata (None if only the file has it) and its location. Raises as `load`."""
        opened = open_catalog(self.catalog)
        near = partial(near_table, opened, self.catalog, self.identifier)
        with asking(str(self), self.catalog, near):
            if isinstance(opened, RestCatalog):
                found = served(opened, self.identifier)
                return found.raw, found.location
            pointers = pointers_of(opened)
            if pointers is not None:
                location = pointers.metadata_location(self.identifier)
            else:
                location = opened.load_table(self.identifier).metadata_location
        if location is None:
            raise AddressError(f"{self}: expected a table, found none of that name in catalog {self.catalog}{near()}")
        return None, location

    def commit(self, snapshot: Raw, parent: int | None, *, table_uuid: str | None = None) -> bool:
        """Add `snapshot`, in the form of an add-snapshot update, and point the branch to it.

        Returns False, and commits nothing, if the branch does not point to `parent`, if the table's UUID is not
        `table_uuid` (None: any; a table that was dropped and created again has a new one), or if another commit used
        the sequence number or row ids. Raises OSError if the outcome is unknown. Raises as `load` if nothing
        was committed.
        """
        raw, location = self._loaded()
        newest = head(raw, subject=str(self))
        if tip(raw, self.branch, subject=str(self)) != parent or table_uuid not in (None, newest.uuid):
            return False
        opened = open_catalog(self.catalog)
        pointers = pointers_of(opened)
        if pointers is not None:
            return metadata_swap.commit(
                pointers, self.identifier, self.storage, snapshot=snapshot, before=(raw, location), branch=self.branch
            )
        with asking(str(self), self.catalog):
            table = opened.load_table(self.identifier)
        return update_commit.commit(opened, table, raw, snapshot=snapshot, branch=self.branch)

    def forget(self, loaded: tuple[Raw, str], gone: RemovedSnapshots) -> bool:
        """Remove snapshots, branches and tags from the table. Raises as `commit`.

        Returns False, and changes nothing, if the table changed since it was `loaded`.
        """
        raw, location = loaded
        opened = open_catalog(self.catalog)
        pointers = pointers_of(opened)
        if pointers is not None:
            after = without(raw, gone, location=location, subject=str(self))
            return metadata_swap.replace(pointers, self.identifier, self.storage, after=after, location=location)
        with asking(str(self), self.catalog):
            table = opened.load_table(self.identifier)
        return update_commit.forget(opened, table, raw, gone=gone)

    def visible(self, snapshot_id: int) -> bool:
        """Whether the table has this snapshot. Raises as `load`."""
        raw, _ = self._loaded()
        return snapshot_id in head(raw, subject=str(self)).snapshots

    @property
    def commits_any_version(self) -> bool:
        """Whether the catalog takes commits of tables of format version 3: pyiceberg writes no such metadata."""
        opened = open_catalog(self.catalog)
        return isinstance(opened, RestCatalog) or pointers_of(opened) is not None


def parse_location(location: str, storage: Storage) -> TableHandle:
    """The handle of `CATALOG/NAMESPACE.TABLE`, or of `CATALOG/NAMESPACE.TABLE$branch_NAME`. Raises AddressError.

    Dots separate the levels of a namespace. Backquotes enclose a level or a table whose own name contains dots.
    """
    place, branch = location_and_branch(location)
    catalog, identifier = catalog_and_name(place)
    expected = f"iceberg:{location}: expected iceberg:CATALOG/NAMESPACE.TABLE, found {location!r}"
    try:
        levels = split_name(identifier)
    except ValueError as failure:
        raise AddressError(f"{expected}: {failure}") from failure
    if not catalog or len(levels) < 2:
        raise AddressError(expected)
    return TableHandle(catalog, levels, storage, branch)


def open_handle(location: str) -> TableHandle:
    """As `parse_location`, with the storage that holds all of the table's files. Commits write to no other storage.

    Raises AddressError, Unreachable, RefusedTable, and as `load`.
    """
    handle = parse_location(location, LocalStorage(MACHINE))
    handle = replace(handle, storage=_store(handle))
    folders = bounds(handle.storage, handle.load(), lambda: claims_of(handle))
    return replace(handle, storage=within(handle.storage, *folders))


@dataclass(frozen=True, slots=True)
class Vended:
    """Asks the catalog for credentials of a table's store, as those that it gave before end.

    A task on another machine carries it: it needs the settings of the catalog there.
    """

    catalog: str
    identifier: tuple[str, ...]

    def __call__(self) -> Options:
        opened = open_catalog(self.catalog)
        subject = f"credentials of {self.catalog}.{join_name(self.identifier)}"
        if not isinstance(opened, RestCatalog):
            raise AddressError(f"{subject}: expected a REST catalog that gives them, found another kind")
        with asking(subject, self.catalog):
            return _way(opened, served(opened, self.identifier).access)


def _store(handle: TableHandle) -> Storage:
    """The store of the table, opened by the catalog's settings and credentials."""
    opened = open_catalog(handle.catalog)
    if not isinstance(opened, RestCatalog):
        _, where = handle.answer()
        return store_of(where, relevant(opened.properties))
    with asking(str(handle), handle.catalog, partial(near_table, opened, handle.catalog, handle.identifier)):
        found = served(opened, handle.identifier)
    place = found.location or str(found.raw.get("location", ""))
    given = gives_keys(found.access)
    if not given and found.access.get("s3.remote-signing-enabled", "").lower() == "true":
        feature = "its catalog wants to sign each request to the store (s3.remote-signing-enabled)"
        raise RefusedTable(str(handle), feature, "let the catalog give credentials (vended-credentials)")
    vended = Vended(handle.catalog, handle.identifier) if given else None
    return store_of(place, _way(opened, found.access), vended)


def _way(catalog: Catalog, access: Mapping[str, str]) -> Options:
    """How to reach a store. Keys that come with a table replace all of the catalog's, and not each its own."""
    own = without_keys(catalog.properties) if gives_keys(access) else catalog.properties
    return relevant({**own, **access})


def claims_of(handle: TableHandle) -> tuple[Claim, ...]:
    """The folders that other tables of the same catalog claim. Raises as `load`."""
    with asking(f"catalog {handle.catalog}", handle.catalog):
        opened = open_catalog(handle.catalog)
        pointers = pointers_of(opened)
        if pointers is None:
            claimed = claims(opened, handle.identifier)
        else:
            claimed = tuple(claim for claim in pointers.claims() if claim.table != handle.identifier)
    return located(handle.storage, claimed)


def open_catalog(name: str) -> Catalog:
    """The catalog that pyiceberg's configuration calls `name`. Raises AddressError, Unreachable."""
    settings = _settings(name)
    key = (os.getpid(), name, json.dumps(settings, sort_keys=True))
    if key not in _OPENED:
        _OPENED[key] = connect(name, settings)
    return _OPENED[key]


def _settings(name: str) -> dict[str, Any]:
    if metastore_table(f"{name}/database.table"):
        return settings_of(name)
    # pyiceberg reads its module-level configuration at import; read it again, as it may have changed.
    config = Config()
    try:
        settings = config.get_catalog_config(name)
    except ValueError as failure:
        raise AddressError(f"catalog {name}: expected settings of a catalog, found {failure}") from failure
    if not settings:
        catalogs = ", ".join(sorted(config.get_known_catalogs())) or "none"
        raise AddressError(
            f"catalog {name}: expected its settings in .pyiceberg.yaml or PYICEBERG_CATALOG__{name.upper()}__*, "
            f"found those of {catalogs}"
        )
    learn(settings)
    return dict(settings)
