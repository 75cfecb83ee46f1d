"""Manifest lists, manifests and index manifests -> raw records -> the live entries, in order.

A record has every field that the Avro file has, also fields that we do not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.paimon.metadata.avro import Container, read_container
from nightkeep.formats.paimon.metadata.manifest_types import RecordKind
from nightkeep.storage import Storage

ADD, DELETE = 0, 1
"""Values of _KIND on disk (FileKind.java)."""


def read_list(storage: Storage, name: str) -> Container:
    """The manifest list stored as `name`. Raises RefusedTable for records of an unknown version."""
    return parse_list(storage.read(f"manifest/{name}"), f"manifest/{name}")


def parse_list(data: bytes, name: str) -> Container:
    """A manifest list from its bytes. Raises as `read_list`."""
    container = read_container(data, subject=name, kind=RecordKind.LIST)
    _require_version(container.records, 2, subject=name)
    return container


def read_manifest(storage: Storage, meta: Record) -> Container:
    """The manifest that a list's record names. Raises CorruptMetadata if it has another number of entries."""
    name = f"manifest/{meta.get('_FILE_NAME')}"
    container = read_container(storage.read(name), subject=name, kind=RecordKind.MANIFEST)
    _require_version(container.records, 2, subject=name)
    with decoding(name, "entries of a manifest, and their counts in its list"):
        adds = sum(record["_KIND"] == ADD for record in container.records)
        counts = (adds, len(container.records) - adds)
        expected = (meta["_NUM_ADDED_FILES"], meta["_NUM_DELETED_FILES"])
    if counts != expected:
        raise CorruptMetadata(name, f"{expected} added and deleted entries", str(counts))
    return container


def read_entries(storage: Storage, name: str) -> Iterator[Record]:
    """The entries of all manifests of a list, in their order. Raises as `read_manifest`, and MissingFile."""
    for meta in read_list(storage, name).records:
        yield from read_manifest(storage, meta).records


def read_index(storage: Storage, name: object) -> Container | None:
    """The index manifest that a snapshot names, if it names one."""
    return None if name is None else parse_index(storage.read(f"manifest/{name}"), f"manifest/{name}")


def parse_index(data: bytes, name: str) -> Container:
    """An index manifest from its bytes. Raises as `read_index`."""
    container = read_container(data, subject=name, kind=RecordKind.INDEX)
    _require_version(container.records, 1, subject=name)
    return container


def merge_entries(records: Iterable[Record]) -> list[Record]:
    """Live entries after applying ADD and DELETE in order (FileEntry.mergeEntries).

    Raises CorruptMetadata for an ADD of a live file or a DELETE of a file that is not live.
    """
    live: dict[object, Record] = {}
    for record in records:
        identity = entry_identity(record)
        if (record["_KIND"] == ADD) == (identity in live):
            verb = "a new file" if record["_KIND"] == ADD else "a live file"
            raise CorruptMetadata(f"manifest entry {record['_FILE']['_FILE_NAME']}", verb, "the opposite")
        if record["_KIND"] == ADD:
            live[identity] = record
        else:
            del live[identity]
    return list(live.values())


def entry_identity(record: Record) -> tuple[object, ...]:
    """The key of a file in entries (FileEntry.Identifier). It includes the level, which an upgrade changes."""
    file = record["_FILE"]
    extra = tuple(file.get("_EXTRA_FILES") or ())
    return (
        record["_PARTITION"],
        record["_BUCKET"],
        file["_LEVEL"],
        file["_FILE_NAME"],
        extra,
        file.get("_EMBEDDED_FILE_INDEX"),
        file.get("_EXTERNAL_PATH"),
    )


@contextmanager
def decoding(subject: str, expected: str) -> Iterator[None]:
    """Turns any error of decoding records, such as a missing field or an impossible value, into CorruptMetadata."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as failure:
        raise CorruptMetadata(subject, expected, reason_of(failure)) from failure


def _require_version(records: Sequence[Record], version: int, *, subject: str) -> None:
    for record in records:
        if record.get("_VERSION") != version:
            raise RefusedTable(
                subject, f"record version {record.get('_VERSION')} is unknown", f"we read version {version}"
            )
