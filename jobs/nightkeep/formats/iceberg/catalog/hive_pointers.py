"""A Hive metastore -> the names of metadata files, each a parameter of its table that one writer at a time replaces.

The protocol is that of Iceberg's HiveTableOperations.java. A writer holds the metastore's lock of the table while it
compares and replaces. A metastore since Hive 2.3.10 and 4.0 (HIVE-26882) also compares itself, in the transaction that
replaces: we always ask for that as well, as writers may be set to take no lock (`engine.hive.lock-enabled`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    CheckLockRequest,
    EnvironmentContext,
    InvalidOperationException,
    LockState,
    MetaException,
    NoSuchObjectException,
    UnlockRequest,
)
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.hive import HiveCatalog
from thrift.Thrift import TException

from nightkeep.errors import AddressError
from nightkeep.formats.iceberg.catalog.claims import Claim
from nightkeep.formats.iceberg.catalog.metadata_swap import Pointers
from nightkeep.formats.iceberg.metadata.table_metadata import Raw
from nightkeep.metastores.hive_connections import MetastoreConnections, wait_for_change
from nightkeep.metastores.table_kind import stated_kind

LOCK_SECONDS: Final = 60.0
"""How long a commit waits for the lock of a table. Other writers hold it for the time of a few requests."""
_LOOK_SECONDS: Final = 0.05
_PAGE: Final = 500
"""Tables in one answer of the metastore."""
_POINTER: Final = "metadata_location"
_CHANGED: Final = "The table has been modified"
"""So a metastore begins its refusal if the parameter is not the expected one."""


def open_catalog(name: str, settings: dict[str, Any]) -> HiveCatalog:
    """pyiceberg's catalog; threads may share it, and its requests end in time."""
    catalog = HiveCatalog(name, **settings)
    # pyiceberg's own client is one connection, which two threads would close for each other.
    catalog._client = MetastoreConnections(settings)  # type: ignore[assignment]
    return catalog


def pointers(catalog: Catalog) -> Pointers:
    assert isinstance(catalog, HiveCatalog)
    return HivePointers(catalog)


@dataclass(frozen=True, slots=True)
class HivePointers:
    """Those of a Hive metastore."""

    catalog: HiveCatalog

    def metadata_location(self, identifier: tuple[str, ...]) -> str | None:
        with self.catalog._client as client:
            found = _table(client, identifier)
        if found is None:
            return None
        stated = found.parameters or {}
        kind = stated_kind(stated)
        location: str | None = stated.get(_POINTER) if kind.lower() == "iceberg" else None
        if location is None:
            subject = ".".join((self.catalog.name, *identifier))
            raise AddressError(f"{subject}: expected an Iceberg table, found one of type {kind or found.tableType}")
        return location

    def swap(self, identifier: tuple[str, ...], *, old: str, new: str, after: Raw) -> bool:
        with self.catalog._client as client, _locked(client, self.catalog, identifier):
            wait_for_change(client)
            found = _table(client, identifier)
            if found is None or found.parameters.get(_POINTER) != old:
                return False
            pointed = {_POINTER: new, "previous_metadata_location": old}
            found.parameters = {**found.parameters, **pointed, **_statistics(found.parameters, after)}
            return _altered(client, identifier, found, old)

    def claims(self) -> Iterator[Claim]:
        with self.catalog._client as client:
            for database in client.get_all_databases():
                names = client.get_all_tables(database)
                for start in range(0, len(names), _PAGE):
                    yield from _claims(client.get_table_objects_by_name(database, names[start : start + _PAGE]))


def _claims(tables: list[HiveTable]) -> Iterator[Claim]:
    for table in tables:
        location = (table.parameters or {}).get(_POINTER)
        if location:
            yield Claim((table.dbName, table.tableName), location)


def _table(client: Client, identifier: tuple[str, ...]) -> HiveTable | None:
    database, name = identifier[:-1], identifier[-1]
    if len(database) != 1:
        raise AddressError(f"{'.'.join(identifier)}: expected DATABASE.TABLE, as a metastore has it")
    try:
        return client.get_table(database[0], name)
    except NoSuchObjectException:
        return None


def _altered(client: Client, identifier: tuple[str, ...], table: HiveTable, old: str) -> bool:
    conditions = {"expected_parameter_key": _POINTER, "expected_parameter_value": old}
    context = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true", **conditions})
    try:
        client.alter_table_with_environment_context(*identifier, table, context)
    except (InvalidOperationException, NoSuchObjectException):
        # The table was dropped or renamed.
        return False
    except MetaException as failure:
        if _CHANGED in str(failure.message):
            return False
        raise
    return True


@contextmanager
def _locked(client: Client, catalog: HiveCatalog, identifier: tuple[str, ...]) -> Iterator[None]:
    """Hold the metastore's exclusive lock of a table, as other writers do when they commit.

    Raises OSError if another one holds it for too long. Nothing was changed then.
    """
    answer = client.lock(catalog._create_lock_request(*identifier))
    try:
        ended = time.monotonic() + LOCK_SECONDS
        state = answer.state
        while state == LockState.WAITING and time.monotonic() < ended:
            time.sleep(_LOOK_SECONDS)
            state = client.check_lock(CheckLockRequest(lockid=answer.lockid)).state
        if state != LockState.ACQUIRED:
            subject = ".".join((catalog.name, *identifier))
            found = LockState._VALUES_TO_NAMES.get(state, state)
            raise OSError(
                f"{subject}: expected the metastore's lock of the table within {LOCK_SECONDS:g} s, found it {found}; "
                "SHOW LOCKS in Hive shows who holds it"
            )
        yield
    finally:
        # A lock that cannot be given back ends by itself, after the metastore's hive.txn.timeout.
        with suppress(TException):
            client.unlock(UnlockRequest(lockid=answer.lockid))


def _statistics(stated: Mapping[str, str], after: Mapping[str, Any]) -> Mapping[str, str]:
    """What other engines keep of the current snapshot beside its name, and plan by. Only what is there is renewed."""
    current = after.get("current-snapshot-id")
    snapshot: Mapping[str, Any] = next(
        (each for each in after.get("snapshots") or () if each["snapshot-id"] == current), {}
    )
    summary = snapshot.get("summary") or {}
    renewed = {
        "numFiles": summary.get("total-data-files"),
        "numRows": summary.get("total-records"),
        "totalSize": summary.get("total-files-size"),
        "snapshot-count": len(after.get("snapshots") or ()),
        "current-snapshot-id": current,
        "current-snapshot-timestamp-ms": snapshot.get("timestamp-ms"),
        "current-snapshot-summary": json.dumps(summary),
    }
    return {name: str(value) for name, value in renewed.items() if name in stated and value is not None}
