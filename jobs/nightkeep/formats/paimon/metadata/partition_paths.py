"""Partition values -> the folder names that Paimon's writers use, and names of partitions. Never parsed back.

Several partitions may share a folder: null, blank texts and the text of `partition.default-name` do. A partition is its
BinaryRow bytes, as in Java, so a unit goes by a name that no two of them share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.java_text import cast_to_string, to_string
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import NANOS_PER_MILLI, Value
from nightkeep.model import digest_of

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
    RefusedTable for values whose text differs between JVMs (java_text).
    """
    parts = zip(names, _texts(names, values, types, legacy=legacy), strict=True)
    return "".join(f"{escape(name)}={escape(_shown(text, default_name))}/" for name, text in parts)


def partition_name(
    names: Sequence[str],
    values: Sequence[Value],
    types: Sequence[PaimonType],
    *,
    stored: bytes,
    legacy: bool,
    default_name: str = DEFAULT_PARTITION_NAME,
) -> str:
    """`p1=v1/p2=v2` as in the folder, but with one name for each partition of a table; `stored` are its bytes.

    Null is `default_name`. A blank text is shown as it is, and a text that equals `default_name` follows `%%`, which no
    folder has. Bytes whose text does not determine them are followed by `#` and a digest.
    """
    texts = _texts(names, values, types, legacy=legacy)
    parts = [f"{escape(name)}={_named(text, default_name)}" for name, text in zip(names, texts, strict=True)]
    exact = stored == encode_row(values, types) and (legacy or all(map(_is_exact, values, types)))
    return "/".join(parts) + ("" if exact else f"#{digest_of(stored)[:12]}")


def bucket_directory(bucket: int) -> str:
    """`bucket-<n>`, or `bucket-postpone` (FileStorePathFactory.relativeBucketPath)."""
    return "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"


def escape(name: str) -> str:
    """Hive's escaping of one path component (PartitionPathUtils.escapePathName)."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in name)


def _texts(
    names: Sequence[str], values: Sequence[Value], types: Sequence[PaimonType], *, legacy: bool
) -> list[str | None]:
    parts = zip(names, values, types, strict=True)
    return [None if value is None else _text(name, value, kind, legacy=legacy) for name, value, kind in parts]


def _text(name: str, value: Value, kind: PaimonType, *, legacy: bool) -> str:
    try:
        return to_string(value, kind) if legacy else cast_to_string(value, kind)
    except ValueError as failure:
        feature = f"partition column {name} of type {kind} with partition.legacy-name = {str(legacy).lower()}"
        advice = "only the engine that wrote it, in the same time zone, finds the folder of such a value"
        raise RefusedTable(f"a partition of {value!r:.80}", f"{feature} is not handled: {failure}", advice) from failure


def _shown(text: str | None, default_name: str) -> str:
    return text if text and text.strip(_WHITE_SPACE) else default_name


def _named(text: str | None, default_name: str) -> str:
    if text is None:
        return escape(default_name)
    return f"{_UNLIKE}{escape(text)}" if text == default_name else escape(text)


def _is_exact(value: Value, kind: PaimonType) -> bool:
    """Whether the text of CAST determines the value: it cuts years to four digits, and times to their precision."""
    if not isinstance(value, int):
        return True
    if kind.root is TypeRoot.TIME:
        return value % int(10 ** (3 - min(kind.precision or 0, 3))) == 0
    days = {TypeRoot.DATE: value, TypeRoot.TIMESTAMP: value // (NANOS_PER_MILLI * _DAY_MILLIS)}.get(kind.root, 0)
    return _FIRST_DAY <= days < _LAST_DAY


# Escaping puts two digits behind every %.
_UNLIKE: Final = "%%"
_DAY_MILLIS: Final = 86_400_000
# Days since 1970 of the years 0 and 10,000.
_FIRST_DAY: Final = -719_528
_LAST_DAY: Final = 2_932_897

_ESCAPED: Final = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\\x7f{}[]^")

# Character.isWhitespace is not str.isspace: it leaves out the no-break spaces and U+0085.
_WHITE_SPACE: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
