"""The files of a partition -> cubes, what was clustered together, and the rest. Pure, metadata only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightkeep.formats.delta.metadata import DataFile
from nightkeep.formats.delta.sizing import Sizes, is_gone, total_live_bytes
from nightkeep.formats.delta.tuning import CUBE_SHARE
from nightkeep.model import Clustering, UnitKey

CLUSTERED = "nightkeep.clustering"
"""Tag of a file that clustering wrote. Readers may ignore tags, and whoever rewrites a file leaves it out."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A partition's files with rows: cubes by ascending size, and `loose` ones that are to be clustered.

    `gone` have no rows any more.
    """

    cubes: tuple[tuple[DataFile, ...], ...]
    loose: tuple[DataFile, ...]
    gone: tuple[DataFile, ...]

    @classmethod
    def of(cls, files: Sequence[DataFile], clustering: Clustering, sizes: Sizes) -> Layout:
        """A file is of a cube if it was clustered just so and not much of it has been deleted since."""
        cubes: dict[str, list[DataFile]] = {}
        loose: list[DataFile] = []
        for file in files:
            cube = None if sizes.is_worn(file) else cube_of(file, clustering)
            if cube is not None:
                cubes.setdefault(cube, []).append(file)
            elif not is_gone(file):
                loose.append(file)
        ordered = sorted(cubes.items(), key=lambda item: (total_live_bytes(item[1]), item[0]))
        gone = tuple(file for file in files if is_gone(file))
        return cls(tuple(tuple(held) for _, held in ordered), tuple(loose), gone)


def merging(layout: Layout) -> int:
    """How many cubes, the smallest first, are to be clustered again with what is loose, by their sizes."""
    total = total_live_bytes(layout.loose)
    for number, cube in enumerate(layout.cubes):
        size = total_live_bytes(cube)
        if size > CUBE_SHARE * total:
            return number
        total += size
    return len(layout.cubes)


def cluster_tag(clustering: Clustering, token: str, key: UnitKey) -> Mapping[str, str]:
    """The tag of what one run clusters in one partition."""
    unit = hashlib.sha256(str(key).encode()).hexdigest()[:8]
    told = {"columns": list(clustering.columns), "curve": clustering.curve.value, "cube": f"{token}-{unit}"}
    return {CLUSTERED: json.dumps(told, separators=(",", ":"), ensure_ascii=False)}


def cube_of(file: DataFile, clustering: Clustering) -> str | None:
    """The cube that a file is part of; None unless it was clustered by these columns along this curve."""
    try:
        told = json.loads(file.tags.get(CLUSTERED, ""))
    except ValueError:
        return None
    if not isinstance(told, dict) or told.get("columns") != list(clustering.columns):
        return None
    # Along one column every curve is a sort.
    if told.get("curve") != clustering.curve.value and len(clustering.columns) > 1:
        return None
    cube = told.get("cube")
    return cube if isinstance(cube, str) else None
