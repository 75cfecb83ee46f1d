"""The tag of a file that clustering wrote <-> the cube it is of."""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.clustering.cubes import cube_mark, marked_cube
from nightkeep.formats.delta.metadata.snapshot import DataFile
from nightkeep.model import Clustering, UnitKey

CLUSTERED = "nightkeep.clustering"
"""Readers may ignore tags, and whoever rewrites a file leaves it out."""


def cluster_tag(clustering: Clustering, token: str, key: UnitKey) -> Mapping[str, str]:
    """The tag of what one run clusters in one partition."""
    return {CLUSTERED: cube_mark(clustering, token, key)}


def cube_of(file: DataFile, clustering: Clustering) -> str | None:
    """The cube that a file is part of; None unless it was clustered by these columns along this curve."""
    return marked_cube(file.tags.get(CLUSTERED, ""), clustering)
