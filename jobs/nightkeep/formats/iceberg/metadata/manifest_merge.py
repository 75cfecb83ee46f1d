"""Snapshot -> which small manifests to merge, and the order of their entries. Readers plan faster with few manifests.

As in Java's rewrite_manifests, entries keep their sequence numbers and row ids, and DELETED entries are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nightkeep.formats.iceberg.metadata.content_files import Entry, Manifest, ManifestContent, NewFile
from nightkeep.formats.iceberg.metadata.manifest_schema import unwritten_type
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot

TARGET_BYTES: Final = ("commit.manifest.target-size-bytes", 8 << 20)
MIN_COUNT: Final = ("commit.manifest.min-count-to-merge", 100)
"""Table properties and their defaults (TableProperties.java)."""

Group = tuple[ManifestContent, int]
"""A manifest holds files of one kind and one partition spec."""


def worth_merging(snapshot: IcebergSnapshot) -> str | None:
    """The reason to merge the table's manifests; None if they are few or large."""
    properties = snapshot.schema.properties
    picked = to_merge(snapshot.manifests, snapshot.schema)
    if not picked:
        return None
    size = sum(manifest.bytes for manifest in picked)
    few = -(-size // target_bytes(properties))
    return f"{len(picked)} small manifests, {size:,} bytes in all, become about {few}"


def to_merge(manifests: Sequence[Manifest], schema: IcebergSchema) -> tuple[Manifest, ...]:
    """Manifests below half the target size, of each content and spec that has enough of them and that we can write."""
    properties = schema.properties
    small: dict[Group, list[Manifest]] = {}
    for manifest in manifests:
        if manifest.live_files and manifest.bytes < target_bytes(properties) // 2:
            small.setdefault((manifest.content, manifest.spec_id), []).append(manifest)
    enough = max(2, _number(properties, MIN_COUNT))
    many = [small[group] for group in small if len(small[group]) >= enough and not unwritten_type(schema, group[1])]
    return tuple(manifest for group in many for manifest in group)


def target_bytes(properties: Mapping[str, str]) -> int:
    return max(1, _number(properties, TARGET_BYTES))


def clustered(entries: Iterable[Entry | NewFile]) -> list[Entry | NewFile]:
    """The entries ordered by partition, nulls first. Entries of one partition keep their order."""
    return sorted(entries, key=_place)


def _place(entry: Entry | NewFile) -> tuple[tuple[bool, object], ...]:
    values = entry.partition if isinstance(entry, NewFile) else entry.file.partition
    return tuple((value is not None, value) for value in values)


def _number(properties: Mapping[str, str], setting: tuple[str, int]) -> int:
    """A property as a number, or its default. Java fails on an invalid number; a merge is optional, so we ignore it."""
    name, default = setting
    text = properties.get(name, "").strip()
    return int(text) if text.isdecimal() else default
