"""Partition values -> the folder names that Paimon's writers use. Never parsed back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nightkeep.formats.paimon.metadata.java_text import cast_to_string, to_string
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.metadata.values import Value

DEFAULT_PARTITION_NAME: Final = "__DEFAULT_PARTITION__"
POSTPONE_BUCKET: Final = -2


def partition_path(
    names: Sequence[str],
    values: Sequence[Value],
    types: Sequence[PaimonType],
    *,
    legacy: bool,
    default_name: str = DEFAULT_PARTITION_NAME,
) -> str:
    """`p1=v1/p2=v2/`, escaped, for one partition; "" for a table without partition keys.

    `names`, `values` and `types` are parallel, in partition-key order. `legacy` is partition.legacy-name.
    `default_name` is partition.default-name, the text of null and of blank text (InternalRowPartitionComputer). Raises
    ValueError for values whose text differs between JVMs (java_text).
    """
    render = to_string if legacy else cast_to_string
    parts: list[str] = []
    for name, value, kind in zip(names, values, types, strict=True):
        text = "" if value is None else render(value, kind)
        parts.append(f"{escape(name)}={escape(text if text.strip(_WHITE_SPACE) else default_name)}/")
    return "".join(parts)


def bucket_directory(bucket: int) -> str:
    """`bucket-<n>`, or `bucket-postpone` (FileStorePathFactory.relativeBucketPath)."""
    return "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"


def escape(name: str) -> str:
    """Hive's escaping of one path component (PartitionPathUtils.escapePathName)."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in name)


_ESCAPED: Final = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\\x7f{}[]^")

# Character.isWhitespace is not str.isspace: it leaves out the no-break spaces and U+0085.
_WHITE_SPACE: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
