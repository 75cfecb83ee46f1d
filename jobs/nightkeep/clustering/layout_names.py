"""Mark at the end of a data file's name <-> how we wrote the file: packed to a target size, or clustered by columns.

For formats whose manifests have no tags: Iceberg and Paimon. Every engine keeps a file's name, and what a snapshot
states is lost when it expires. An engine that rewrites the rows gives the file a new name. So planning reads no data
file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.model import Curve
from nightkeep.model.run_names import MARK

_MARKED: Final = re.compile(
    rf".*{MARK}-([0-9a-f]{{16}})-([0-9a-f]{{8}})-.+-(p[0-9]+|c[0-9a-f]{{16}})(?:\.[a-z0-9_]+)?\.(?:parquet|orc|avro)$"
)
"""The run's token, its unit and the mark. What precedes them is the format's: the table's prefix, an attempt, a number,
or the hash that layouts of Iceberg for object stores put first. The name ends with the file's format, and the codec of
some tables.
"""


def layout_mark(layout: FileLayout, field_ids: Mapping[str, int]) -> str:
    """The mark of files with this layout. `field_ids` has the columns by their dotted names."""
    clustering = layout.clustering
    if clustering is None:
        return packed_mark(layout.target_bytes)
    return clustered_mark([field_ids[name] for name in clustering.columns], clustering.curve)


def packed_mark(target_bytes: int) -> str:
    """The mark of files that packing writes with this target size."""
    return f"p{target_bytes}"


def clustered_mark(field_ids: Sequence[int], curve: Curve) -> str:
    """The mark of files clustered along a curve by these columns, in this order.

    Columns are given by field id, so a renamed column is the same column, and a new column with the name of a dropped
    one is not.
    """
    # With one column every curve is a plain sort.
    text = json.dumps([*field_ids, curve.value if len(field_ids) > 1 else "sort"])
    return f"c{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def run_of(path: str, mark: str) -> str | None:
    """The token of the run that wrote a data file with this mark; None for other files."""
    match = _tag(path, mark)
    return None if match is None else match[1]


def cube_of(path: str, mark: str) -> str | None:
    """An id shared by all files that one run wrote with this mark in one unit; None for other files."""
    match = _tag(path, mark)
    return None if match is None else f"{match[1]}-{match[2]}"


def _tag(path: str, mark: str) -> re.Match[str] | None:
    match = _MARKED.match(path.rpartition("/")[2])
    return match if match is not None and match[3] == mark else None
