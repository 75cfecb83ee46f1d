"""Manifest list and snapshot summary -> the list is complete, contradicts the summary, or cannot be confirmed.

An Avro file truncated at the end of a block is still valid, so a list needs other evidence. Summaries count data files,
delete files and rows of a snapshot (spec, "Optional Snapshot Summary Fields"). Headers of lists name their snapshot.
Lists give the size of each manifest, and its entries and rows by status.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.avro import read_header
from nightkeep.formats.iceberg.metadata.content_files import Manifest, ManifestContent
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, objects, text
from nightkeep.protocol.table_files import Unproven

DATA_FILES, DELETE_FILES, RECORDS = "total-data-files", "total-delete-files", "total-records"


@dataclass(frozen=True, slots=True)
class Totals:
    """A snapshot's counts of files and rows in its summary, each None if missing."""

    data_files: int | None
    delete_files: int | None
    records: int | None

    @classmethod
    def of(cls, snapshot: Raw) -> Totals:
        summary = snapshot.get("summary")
        texts = summary if isinstance(summary, Mapping) else {}
        return cls(*(_count(texts.get(key)) for key in (DATA_FILES, DELETE_FILES, RECORDS)))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def require_owner(data: bytes, snapshot_id: int, *, subject: str) -> None:
    """Raises CorruptMetadata if the header of a manifest list names another snapshot."""
    stated = read_header(data, subject=subject).metadata.get("snapshot-id", b"").decode("ascii", "replace")
    if stated.isdecimal() and stated != str(snapshot_id):
        raise CorruptMetadata(subject, f"the manifest list of snapshot {snapshot_id}", f"that of {stated:.20}")


def unproven(manifests: Sequence[Manifest], stated: Totals, *, subject: str) -> tuple[Unproven, ...]:
    """Counts of a manifest list that the summary does not confirm. Raises CorruptMetadata if it contradicts them."""
    data = [each for each in manifests if each.content is ManifestContent.DATA]
    deletes = [each for each in manifests if each.content is ManifestContent.DELETES]
    totals = (_live(data), _live(deletes), sum(each.added_rows + each.existing_rows for each in data))
    expected = (stated.data_files, stated.delete_files, stated.records)
    for key, claim, counted in zip((DATA_FILES, DELETE_FILES, RECORDS), expected, totals, strict=True):
        if claim is not None and claim != counted:
            what = f"{key} = {claim}, as the summary of its snapshot states"
            raise CorruptMetadata(subject, what, f"manifests of {counted}")
    silent = [key for key, claim in zip((DATA_FILES, DELETE_FILES), expected, strict=False) if claim is None]
    return (Unproven(subject, f"the summary of its snapshot states no {' and no '.join(silent)}"),) if silent else ()


def unproven_version(raw: Raw, location: str) -> tuple[Unproven, ...]:
    """Evidence missing that a metadata file has the content of its own version, and not of an older one.

    The number in a file's name grows by one with every commit. Raises CorruptMetadata if the last file in its metadata
    log does not have the number before.
    """
    logged = [text(each, "metadata-file", subject=location) for each in objects(raw, "metadata-log", subject=location)]
    number = _numbered(location)
    # Some catalogs give all metadata files the number 0; Hadoop tables start with 1.
    if not number:
        return ()
    if not logged:
        return (
            (Unproven(location, f"it has no log of earlier versions, and {number} in its name"),) if number > 1 else ()
        )
    before = _numbered(logged[-1])
    if before is not None and before != number - 1:
        raise CorruptMetadata(location, f"version {number - 1} as the last of its log", f"version {before}")
    return ()


def _live(manifests: Iterable[Manifest]) -> int:
    return sum(each.live_files for each in manifests)


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else None


def _numbered(location: str) -> int | None:
    match = _VERSION.fullmatch(location.rpartition("/")[2])
    return int(match[1]) if match else None


_NUMBER: Final = re.compile("[0-9]{1,18}")
_VERSION: Final = re.compile(r"(?:v(?=[0-9]+\.))?([0-9]{1,9})(?:-[0-9a-fA-F-]{36})?(?:\.gz)?\.metadata\.json(?:\.gz)?")
"""`00003-<uuid>.metadata.json`, and `v3.metadata.json` of Hadoop tables (BaseMetastoreTableOperations.java)."""
