"""Nights of a clustered unit without files: rows in memory, laid along the curve, and the bounds that files would have.

The rule that picks cubes is the real one. A row group is a sixteenth of a file of the target size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.picking import ClusterPick, UnitFiles, pick_files
from nightkeep.clustering.sizing import Sizes, file_count
from nightkeep.kernels.skipping import FileBounds, simulated_layout
from nightkeep.model import Clustering, Curve

TARGET = 1 << 20
GROUPS = 16
"""Row groups of a file, as the writers make them at this target."""
ROW_BYTES = TARGET // (GROUPS * 8)
"""Eight rows make a row group."""
BY = Clustering(("a", "b"), Curve.HILBERT)
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SimulatedFile:
    """One file of a cube, or new rows in no cube. `bounds` has the least and the greatest value of each column."""

    name: str
    rows: int
    cube: str | None
    bounds: Mapping[str, tuple[int, int]]
    deleted_rows: int = 0
    deletes: int = 0

    @property
    def bytes(self) -> int:
        return self.rows * ROW_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedCube:
    """Rows that were laid along the curve together, their files and the row groups of these."""

    name: str
    rows: pa.Table
    files: Sequence[SimulatedFile]
    groups: Sequence[SimulatedFile]

    @classmethod
    def of(cls, name: str, rows: pa.Table) -> "SimulatedCube":
        count = file_count(rows.num_rows * ROW_BYTES, TARGET)
        return cls(name, rows, _files(rows, count, name), _files(rows, GROUPS * count, name))


@dataclass(slots=True)
class SimulatedUnit:
    """A unit's cubes after some nights, and the bytes that came and that clustering wrote."""

    cubes: list[SimulatedCube] = field(default_factory=list)
    came: int = 0
    wrote: int = 0

    def append(self, rows: pa.Table) -> ClusterPick[SimulatedFile]:
        """One night: rows come, and are clustered with what the rule picks."""
        loose = _files(rows, 1, None)
        pick = self.pick(loose)
        picked = {file.cube for file in pick.files}
        parts = [rows, *(cube.rows for cube in self.cubes if cube.name in picked)]
        made = SimulatedCube.of(f"{self.came:012}", pa.concat_tables(parts))
        self.cubes = [made, *(cube for cube in self.cubes if cube.name not in picked)]
        self.came += rows.num_rows
        self.wrote += made.rows.num_rows
        return pick

    def pick(self, loose: Sequence[SimulatedFile] = ()) -> ClusterPick[SimulatedFile]:
        files = [*loose, *(file for cube in self.cubes for file in cube.files)]
        paths = tuple((name,) for name in BY.columns)
        unit = UnitFiles(files, BY, paths, lambda file: file.cube, bounds_of)
        assert FileLayout(TARGET, BY).group_bytes == TARGET // GROUPS
        return pick_files(unit, Sizes(TARGET, TARGET // 2, 0.05), full=False)

    def read_share(self, ranges: Mapping[str, Longs]) -> float:
        """The mean share of rows in row groups that ranges do not exclude."""
        return read_share([group for cube in self.cubes for group in cube.groups], ranges)


def bounds_of(files: Sequence[SimulatedFile]) -> dict[tuple[str, ...], FileBounds]:
    rows = np.array([file.rows for file in files])
    sides = {name: np.array([file.bounds[name] for file in files]).reshape(-1, 2) for name in BY.columns}
    return {(name,): FileBounds(pa.array(held[:, 0]), pa.array(held[:, 1]), rows) for name, held in sides.items()}


def read_share(parts: Sequence[SimulatedFile], ranges: Mapping[str, Longs]) -> float:
    rows, shares = np.array([part.rows for part in parts]), []
    for name, wanted in ranges.items():
        held = np.array([part.bounds[name] for part in parts])
        meets = (held[:, :1] <= wanted[:, 1]) & (held[:, 1:] >= wanted[:, 0])
        shares.append(float((meets * rows[:, None]).sum(axis=0).mean() / rows.sum()))
    return float(np.mean(shares))


def one_percent_ranges(rows: pa.Table) -> dict[str, Longs]:
    """For each column, 50 ranges of 1 % of its rows."""
    found = {}
    for name in BY.columns:
        ordered = np.sort(rows.column(name).to_numpy())
        starts = np.linspace(0, 0.99 * (len(ordered) - 1), 50).astype(np.int64)
        found[name] = np.stack([ordered[starts], ordered[starts + len(ordered) // 100]], axis=1)
    return found


def _files(rows: pa.Table, count: int, cube: str | None) -> list[SimulatedFile]:
    found = simulated_layout(rows, BY.columns, files=count, curve=BY.curve)
    sides = {name: np.stack([np.asarray(each.lows), np.asarray(each.highs)], axis=1) for name, each in found.items()}
    held = found[BY.columns[0]].rows
    return [
        SimulatedFile(f"{cube}-{at}", int(held[at]), cube, {name: tuple(side[at]) for name, side in sides.items()})
        for at in range(count)
    ]
