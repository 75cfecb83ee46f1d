"""The tags of a file that packing or clustering wrote <-> how it was written."""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.clustering.cubes import cube_mark, marked_cube
from nightkeep.formats.delta.metadata.snapshot import DeltaDataFile
from nightkeep.model import Clustering, UnitKey

PACKED = "nightkeep.packed"
"""Tag of a file that packing wrote: the run and the target. What a run left apart stays apart until it changes."""
CLUSTERED = "nightkeep.clustering"
"""Readers may ignore tags, and whoever rewrites a file leaves it out."""


def cluster_tag(clustering: Clustering, token: str, key: UnitKey) -> Mapping[str, str]:
    """The tag of what one run clusters in one partition."""
    return {CLUSTERED: cube_mark(clustering, token, key)}


def packed_tag(token: str, target_bytes: int) -> Mapping[str, str]:
    """The tag of what one run packs to this target."""
    return {PACKED: f"{token}/{target_bytes}"}


def run_of(file: DeltaDataFile, target_bytes: int) -> str | None:
    """The run that packed the file to this target, None for every other file."""
    told = file.tags.get(PACKED, "")
    return told if told.endswith(f"/{target_bytes}") else None


def cube_of(file: DeltaDataFile, clustering: Clustering) -> str | None:
    """The cube that a file is part of; None unless it was clustered by these columns along this curve."""
    return marked_cube(file.tags.get(CLUSTERED, ""), clustering)
