"""Files of a unit -> cubes (files that were clustered together), and the other files. Pure, metadata only."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from nightkeep.clustering.clustered_files import F
from nightkeep.clustering.sizing import Sizes, is_gone, total_live_bytes
from nightkeep.clustering.tuning import CUBE_SHARE, SMALL_CUBE_FILES
from nightkeep.model import Clustering, UnitKey
from nightkeep.model.run_names import unit_token


@dataclass(frozen=True, slots=True)
class UnitCubes(Generic[F]):
    """A unit's files: cubes by ascending size, `loose` files to be clustered, and `gone` files without live rows."""

    cubes: tuple[tuple[F, ...], ...]
    loose: tuple[F, ...]
    gone: tuple[F, ...]

    @classmethod
    def of(cls, files: Sequence[F], sizes: Sizes, cube_of: Callable[[F], str | None]) -> UnitCubes[F]:
        """A file belongs to a cube if it was clustered in the requested way and is not worn.

        `cube_of` returns the cube of a file; None if it was not clustered in the requested way.
        """
        cubes: dict[str, list[F]] = {}
        loose: list[F] = []
        for file in files:
            cube = None if sizes.is_worn(file) else cube_of(file)
            if cube is not None:
                cubes.setdefault(cube, []).append(file)
            elif not is_gone(file):
                loose.append(file)
        ordered = sorted(cubes.items(), key=lambda item: (total_live_bytes(item[1]), item[0]))
        gone = tuple(file for file in files if is_gone(file))
        return cls(tuple(tuple(held) for _, held in ordered), tuple(loose), gone)


def merging(layout: UnitCubes[F], target_bytes: int) -> int:
    """The number of small cubes, smallest first, to cluster again together with the loose files, by their sizes."""
    total = total_live_bytes(layout.loose)
    for number, cube in enumerate(layout.cubes):
        size = total_live_bytes(cube)
        if size > CUBE_SHARE * total or size >= SMALL_CUBE_FILES * target_bytes:
            return number
        total += size
    return len(layout.cubes)


def cube_mark(clustering: Clustering, token: str, key: UnitKey) -> str:
    """The mark of all files that one run clusters in one unit: text that a format stores with the file."""
    fields = {
        "columns": list(clustering.columns),
        "curve": clustering.curve.value,
        "cube": f"{token}-{unit_token(key)}",
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def marked_cube(mark: str, clustering: Clustering) -> str | None:
    """The cube in a mark; None if the mark has other columns or another curve."""
    try:
        fields = json.loads(mark)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("columns") != list(clustering.columns):
        return None
    # With one column every curve is a plain sort.
    if fields.get("curve") != clustering.curve.value and len(clustering.columns) > 1:
        return None
    cube = fields.get("cube")
    return cube if isinstance(cube, str) else None
