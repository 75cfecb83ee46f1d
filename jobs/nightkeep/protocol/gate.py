"""What a format gives the gate: how the rows of a unit are read, and what is looked for in a candidate."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.model import UnitKey, View
from nightkeep.protocol.work import S, U

Positions = Mapping[str, BitMap64]
"""Row ordinals (0-based, physical) by data file name."""


@dataclass(frozen=True, slots=True)
class Gate(Generic[S, U]):
    """Functions of a format's room `gate`, which reaches no rewrite and no commit. It pickles: proofs are tasks."""

    survivors: Callable[[U, View], Positions]
    """The rows a reader with this view sees, as positions in the unit's data files. Reads key columns at most."""
    rows: Callable[[U, Positions], Iterator[pa.RecordBatch]]
    """The rows at these positions, every column, cast to the table's logical types; order does not matter."""
    pieces: Callable[[U, U], Sequence[tuple[U, U]]]
    """A unit of the base and of the candidate in parts that can be proven side by side: what both hold alike is in the
    same part on both sides. The rows of a side are those of its parts, each once; a pair that must be read as one is
    its only part."""
    unit_faults: Callable[[U, U], tuple[str, ...]]
    """Broken promises of the files of the second unit, the candidate's: statistics, ranges, levels, vectors. Reads
    bytes, not memory."""
    faults: Callable[[S, S, Sequence[UnitKey]], tuple[str, ...]]
    """Disagreements between independent counts of the second version as a whole, whose parent is the first, and changes
    outside of the touched units."""
    shown: Callable[[U], frozenset[Hashable]]
    """What a raw reader sees of a unit, piece by piece: files with their levels, vectors by name and range."""
