"""For each expectation of the check after a removal of files, a sabotage in which it fails and no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.formats.delta.hand_made import HandMade
from tests.sabotage.blinding import CHANGED, COUNT, FIRST_SUM, SECOND_SUM, TOLD_ROWS, Blinding, Content
from tests.sabotage.lone_kinds import DAY, PRICED, priced

ABSENT = "every file of every retained version is there"
RESIZED = "every one has the size that metadata states"
UNREADABLE = "footers can be read"
_FOOTER = 200
"""Bytes before the length of a footer, all of them of the footer."""


@dataclass(frozen=True, slots=True)
class Emptied:
    """A Delta table of one file, `made` before files are removed."""

    made: HandMade

    @classmethod
    def at(cls, folder: Path) -> Emptied:
        made = HandMade(folder)
        made.append(DAY, priced(Blinding(PRICED).doubled))
        return cls(made)

    @classmethod
    def there(cls, folder: Path) -> Emptied:
        return cls(HandMade.at(folder))

    @property
    def file(self) -> Path:
        (path,) = self.made.live()
        return self.made.folder / path

    def say(self, **told: Any) -> None:
        """Other values of its add, in the commit that is there: a sweep may have made more of them."""
        commit = self.made.folder / "_delta_log" / f"{1:020d}.json"
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        (add,) = (action["add"] for action in actions if "add" in action)
        add |= told
        commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))

    def write(self, after: Content) -> None:
        """Other rows, which the log counts."""
        rows = after(Blinding(PRICED))
        pq.write_table(priced(rows), self.file, store_schema=False)
        self.say(size=self.file.stat().st_size, stats=json.dumps({"numRecords": len(rows)}))

    def compress(self) -> None:
        pq.write_table(pq.read_table(self.file, partitioning=None), self.file, compression="gzip")

    def blot(self) -> None:
        data = self.file.read_bytes()
        self.file.write_bytes(data[: -_FOOTER - 8] + bytes(_FOOTER) + data[-8:])

    def miscount(self) -> None:
        (add,) = self.made.live().values()
        told = json.loads(add["stats"])
        self.say(stats=json.dumps({**told, "numRecords": told["numRecords"] + 1}))


Act = Callable[[Emptied], object]


def _writes(after: Content) -> Act:
    return lambda table: table.write(after)


AFTER_REMOVALS: Mapping[str, tuple[str, Act]] = {
    **{
        name: (CHANGED[name][0], lambda t, name=name: t.write(CHANGED[name][1]))
        for name in (COUNT, FIRST_SUM, SECOND_SUM)
    },
    TOLD_ROWS: ("the log counts a row more", Emptied.miscount),
    ABSENT: ("a file goes", lambda table: table.file.unlink()),
    RESIZED: ("a file is compressed again", Emptied.compress),
    UNREADABLE: ("a footer is blotted out", Emptied.blot),
}
