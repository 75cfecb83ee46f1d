"""The end of a data file's name <-> how we wrote the file: packed to which target, or clustered by what.

A name is all that every engine keeps of a file: manifests have no tags, and a snapshot's summary goes when the
snapshot expires. Whoever writes the rows anew gives their file another name. Decided by metadata alone: no file is
opened to plan.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final

from nightkeep.model import Curve
from nightkeep.model.run_names import MARK

_MARKED: Final = re.compile(rf"(?:^|-)\d+-{MARK}-([^-]+)-([^-]+)-.+-(p[0-9]+|c[0-9a-f]{{16}})\.parquet$")
"""The run's token, its unit, the mark; before the mark an attempt and a number at random, which has eight digits.

Layouts for object stores may put a hash before the name.
"""


def packed_mark(target_bytes: int) -> str:
    """Of files that packing writes."""
    return f"p{target_bytes}"


def clustered_mark(field_ids: Sequence[int], curve: Curve) -> str:
    """Of files that lie along a curve by these columns, in this order.

    By field id: a column that is renamed is the same one, and one that has a dropped one's name is another.
    """
    # Along one column every curve is a sort.
    told = json.dumps([*field_ids, curve.value if len(field_ids) > 1 else "sort"])
    return f"c{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def run_of(path: str, mark: str) -> str | None:
    """The run that wrote a data file with this mark, None for every other file."""
    found = _found(path, mark)
    return None if found is None else found[1]


def cube_of(path: str, mark: str) -> str | None:
    """What the files that one run wrote with this mark in one unit have in common, None for every other file."""
    found = _found(path, mark)
    return None if found is None else f"{found[1]}-{found[2]}"


def _found(path: str, mark: str) -> re.Match[str] | None:
    found = _MARKED.search(path.rpartition("/")[2])
    return found if found is not None and found[3] == mark else None
