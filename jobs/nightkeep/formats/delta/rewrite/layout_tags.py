"""The tags of a file that packing or clustering wrote <-> how it was written."""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.clustering.cubes import cube_mark, marked_cube
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.model import Clustering, UnitKey

PACKED = "nightkeep.packed"
"""Tag of a file that packing wrote: run and target. Such files are not packed again together until one of them changes.
"""
CLUSTERED = "nightkeep.clustering"
"""Tag of a file that clustering wrote. Readers may ignore tags, and other writers drop it when they rewrite the file.
"""


def cluster_tag(clustering: Clustering, token: str, key: UnitKey) -> Mapping[str, str]:
    """The tag of files that one run clusters in one partition."""
    return {CLUSTERED: cube_mark(clustering, token, key)}


def packed_tag(token: str, target_bytes: int) -> Mapping[str, str]:
    """The tag of files that one run packs to this target."""
    return {PACKED: f"{token}/{target_bytes}"}


def run_of(file: DeltaDataFile, target_bytes: int) -> str | None:
    """The tag's value if the file was packed to this target, else None. It identifies the run."""
    tag = file.tags.get(PACKED, "")
    return tag if tag.endswith(f"/{target_bytes}") else None


def cube_of(file: DeltaDataFile, clustering: Clustering) -> str | None:
    """The cube that a file is part of; None unless it was clustered by these columns along this curve."""
    return marked_cube(file.tags.get(CLUSTERED, ""), clustering)
