"""A table's folder -> what its readers see, and which files are whose. Nothing but this repository reads here."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

from tests.support.table_storage import storage_of

from nightkeep.formats.paimon.format import PaimonTable, open_table
from nightkeep.formats.paimon.metadata.changelog_files import with_changelog
from nightkeep.formats.paimon.metadata.entries import read_list
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Address, Fingerprint, Operation, View, run_token

SAMPLES = Path(__file__).parents[3] / "samples/paimon/shop.db"


@dataclass(frozen=True, slots=True)
class Contents:
    """The latest version: its rows merged on read, and as a reader shows them who skips level 0."""

    version: int
    merged: Fingerprint
    raw: Fingerprint


def opened(table: Path) -> PaimonTable:
    return open_table(Address("paimon", str(table), table.name))


def contents(table: Path, version: int | None = None) -> Contents:
    found = opened(table)
    snapshot = found.snapshot(version)
    return Contents(snapshot.version, *(_rows(found, snapshot, view) for view in (View.MERGED, View.RAW)))


def _rows(table: PaimonTable, snapshot: PaimonSnapshot, view: View) -> Fingerprint:
    batches = (batch for unit in snapshot.units for batch in table.gate.rows(unit, table.gate.survivors(unit, view)))
    return reduce(add, map(fingerprint, batches), Fingerprint())


def files(table: Path) -> dict[str, bytes]:
    """Every file below the table's folder, by relative name, as a digest of its bytes."""
    found = (path for path in table.rglob("*") if path.is_file())
    return {str(path.relative_to(table)): hashlib.blake2b(path.read_bytes()).digest() for path in found}


def leftovers(table: Path, before: Mapping[str, bytes]) -> set[str]:
    """Files that are new since `before` and that the latest version does not need."""
    return set(files(table)) - set(before) - set(_referenced(table))


def _referenced(table: Path) -> Iterator[str]:
    snapshot = opened(table).snapshot()
    yield f"snapshot/snapshot-{snapshot.version}"
    for key in ("baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest"):
        yield f"manifest/{snapshot.raw.get(key)}"
    yield from _changelog(opened(table), snapshot)
    yield from (f"manifest/{meta['_FILE_NAME']}" for meta in (*snapshot.base_manifests, *snapshot.delta_manifests))
    yield from (unit.path(file) for unit in snapshot.units for file in unit.files)
    yield from (f"index/{record['_FILE_NAME']}" for record in snapshot.index_records)


def _changelog(table: PaimonTable, snapshot: PaimonSnapshot) -> Iterator[str]:
    storage = storage_of(table)
    if (name := snapshot.raw.get("changelogManifestList")) is not None:
        yield from (f"manifest/{meta['_FILE_NAME']}" for meta in read_list(storage, str(name)).records)
    for unit in with_changelog(storage, snapshot).units:
        yield from (unit.path(file) for file in unit.changelog)


def token(run_id: str) -> str:
    """What file names and commit users say of a run."""
    return run_token(run_id, Operation.UPGRADE)


def commits_of(table: Path, run_id: str) -> list[int]:
    """Versions that a run committed."""
    return sorted(
        int(document["id"])
        for document in (json.loads(path.read_bytes()) for path in (table / "snapshot").glob("snapshot-*"))
        if document["commitUser"] == f"nightkeep-{token(run_id)}"
    )
