"""Names that a request clusters by -> leaf columns of the table that clustering helps, in the table's spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from nightkeep.errors import UsageError, did_you_mean
from nightkeep.model import Clustering

Paths = tuple[tuple[str, ...], ...]


class ClusterLeaf(Protocol):
    """A column or field, not a struct, with its `path` of logical names. `ordered`: its statistics have bounds."""

    @property
    def path(self) -> tuple[str, ...]: ...

    @property
    def type(self) -> pa.DataType: ...

    @property
    def ordered(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ClusterColumns:
    """The leaf columns of a table. `indexed` are those for which new files have statistics.

    `constant` are columns with one value per partition: clustering by them is useless. `advice` explains how to get
    statistics of more columns.
    """

    leaves: Sequence[ClusterLeaf]
    indexed: Sequence[ClusterLeaf]
    constant: tuple[str, ...]
    advice: str

    @property
    def tops(self) -> Sequence[str]:
        """The top-level columns that have leaves."""
        return list(dict.fromkeys(leaf.path[0] for leaf in (*self.leaves, *self.indexed)))

    def resolved(self, clustering: Clustering) -> Clustering:
        """The clustering with the table's own names. A name is a column, or the path a.b of a leaf in a struct.

        Upper and lower case may differ if the name stays unambiguous, as in Spark. Raises UsageError unless each is a
        data column with an order and statistics, and is named once.
        """
        spelled = tuple(".".join(path) for path in self.paths(clustering))
        if len(set(spelled)) != len(spelled):
            names = ", ".join(clustering.columns)
            raise UsageError(f"cluster by {names}: expected different columns, one is there twice")
        return replace(clustering, columns=spelled)

    def paths(self, clustering: Clustering) -> Paths:
        """The paths of the clustering's columns. Raises UsageError as `resolved` does."""
        return tuple(self._leaf(name).path for name in clustering.columns)

    def _leaf(self, name: str) -> ClusterLeaf:
        called = self._called(name)
        if called in self.constant:
            text = "it is a partition column, one value in every file"
            raise UsageError(f"cluster by {name}: {text}; {self._usable()} would work")
        leaf = next(leaf for leaf in self.leaves if ".".join(leaf.path) == called)
        if isinstance(leaf.type, pa.ListType | pa.MapType | pa.StructType) or pa.types.is_null(leaf.type):
            raise UsageError(f"cluster by {name}: its type {leaf.type} has no order; {self._usable()} would work")
        if leaf not in self.indexed:
            text = "it has no statistics, so that no reader could skip files by it"
            raise UsageError(f"cluster by {name}: {text}; {self.advice}; {self._usable()} would work")
        return leaf

    def _called(self, name: str) -> str:
        """The table's own name for `name`: the equal one, else the only one that differs in case."""
        names = dict.fromkeys((*self.constant, *(".".join(leaf.path) for leaf in self.leaves)))
        near = [own for own in names if _same(own, name)]
        if not near:
            raise UsageError(f"cluster by {name}: {self._missing(name)}")
        if name not in names and len(near) > 1:
            raise UsageError(f"cluster by {name}: expected one column of that name, found {', '.join(near)}")
        return name if name in names else near[0]

    def _missing(self, name: str) -> str:
        inside = [".".join(leaf.path) for leaf in self.leaves if _same(leaf.path[0], name.split(".")[0])]
        if inside:
            return f"expected a leaf of a struct, one of {', '.join(inside)}"
        usable = [".".join(leaf.path) for leaf in self.indexed if leaf.ordered]
        return f"the table has no such column; {self._usable()} would work{did_you_mean(name, usable)}"

    def _usable(self) -> str:
        names = [".".join(leaf.path) for leaf in self.indexed if leaf.ordered]
        return ", ".join(name for name in names if name not in self.constant) or "none of its columns"


def indexed_columns(columns: ClusterColumns) -> Sequence[ClusterLeaf]:
    return columns.indexed


def paths_of(leaves: Sequence[ClusterLeaf]) -> Paths:
    """The paths of the leaves that have an order."""
    return tuple(leaf.path for leaf in leaves if leaf.ordered)


def _same(left: str, right: str) -> bool:
    return left.lower() == right.lower()
