"""Many small manifests -> few, with the files of a partition beside each other: what a reader plans with.

As Java's rewrite_manifests: entries keep their sequence numbers and row ids, and what is deleted is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
    """Why the table's manifests should be written anew, None where they are few or large."""
    properties = snapshot.schema.properties
    picked = to_merge(snapshot.manifests, snapshot.schema)
    if not picked:
        return None
    size = sum(manifest.bytes for manifest in picked)
    few = -(-size // target_bytes(properties))
    return f"{len(picked)} small manifests, {size:,} bytes in all, become about {few}"


def to_merge(manifests: Sequence[Manifest], schema: IcebergSchema) -> tuple[Manifest, ...]:
    """Manifests below half the target, of each kind and spec that has enough of them, and that we write."""
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
    """In the order of their partitions, nulls first; within one as they came."""
    return sorted(entries, key=_place)


def _place(entry: Entry | NewFile) -> tuple[tuple[bool, Any], ...]:
    values: Any = entry.raw["partition"] if isinstance(entry, NewFile) else entry.file.partition
    return tuple((value is not None, value) for value in values)


def _number(properties: Mapping[str, str], wanted: tuple[str, int]) -> int:
    """A property that is no number is as good as none: Java fails on it, and we only tidy."""
    name, default = wanted
    text = properties.get(name, "").strip()
    return int(text) if text.isdecimal() else default
