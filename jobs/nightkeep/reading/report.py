"""The plan of a read, for people: which files it reads, and what it leaves out and why. str() is a text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nightkeep.card import render_card
from nightkeep.model.counted import counted
from nightkeep.protocol.reading import ReadView
from nightkeep.sql_text.rows.parse import shortened


class Why(StrEnum):
    """What a read leaves out, in the order in which it is left out."""

    PARTITIONS = "partitions"
    BUCKETS = "buckets"
    FILES = "files"
    ROW_GROUPS = "row_groups"
    SPLITS = "splits"

    @property
    def reason(self) -> str:
        return _REASONS[self]


_REASONS = {
    Why.PARTITIONS: "by partition values",
    Why.BUCKETS: "by the hash of the key",
    Why.FILES: "by statistics of files",
    Why.ROW_GROUPS: "by statistics of row groups",
    Why.SPLITS: "as nothing in them is left",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """`left_out` of `of` things were left out. Of files, those of partitions and buckets that are left."""

    what: Why
    of: int
    left_out: int


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a read reads. `bytes` are of whole row groups. `merged_files` are of rows that are merged by key.

    `footers`: whether footers were read, so that row groups of all files are counted.
    """

    table: str
    format: str
    version: int
    view: ReadView
    columns: tuple[str, ...]
    where: str | None
    splits: int
    files: int
    bytes: int
    merged_files: int
    left_out: tuple[LeftOut, ...]
    footers: bool

    def to_json(self) -> dict[str, object]:
        return {
            "table": self.table,
            "format": self.format,
            "version": self.version,
            "view": str(self.view),
            "columns": list(self.columns),
            "where": self.where,
            "splits": self.splits,
            "files": self.files,
            "bytes": self.bytes,
            "merged_files": self.merged_files,
            "left_out": {
                str(each.what): {"of": each.of, "left_out": each.left_out, "why": each.what.reason}
                for each in self.left_out
            },
        }

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        return render_card(self.table, str(self).removeprefix(f"{self.table}: ").split("\n"))

    def __str__(self) -> str:
        head = f"{self.table}: {self.view} read of version {self.version}, {counted(len(self.columns), 'column')}"
        where = "" if self.where is None else f", where {shortened(self.where)}"
        lines = [
            f"{head}{where}",
            f"  reads {counted(self.files, 'file')} in {counted(self.splits, 'split')}, {self.bytes:,} bytes",
        ]
        if self.merged_files:
            merged = f"  {counted(self.merged_files, 'file')} to merge by key"
            lines.append(f"{merged}: values of other columns leave out none of them" if self.where else merged)
        lines += [
            f"  {each.left_out} of {each.of} {each.what.replace('_', ' ')} left out {each.what.reason}"
            for each in self.left_out
            if each.left_out
        ]
        return "\n".join(lines)
