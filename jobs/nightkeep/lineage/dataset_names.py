"""The address of a table -> namespace and name of its dataset, by OpenLineage's naming of storages. Pure.

https://openlineage.io/docs/spec/naming
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

from nightkeep.redaction import redact

_ROOTED: Final = frozenset({"hdfs", "file"})
"""Schemes whose names keep the slash before them."""


def dataset_name(address: str) -> tuple[str, str]:
    """Namespace and name. A table that only a catalog names is that of the catalog, by the name it has here."""
    kind, _, location = redact(address).partition(":")
    if "://" not in location:
        if kind == "iceberg":
            catalog, _, table = location.partition("/")
            return f"iceberg://{catalog}", table or location
        return "file", location
    parts = urlsplit(location)
    if parts.scheme == "file":
        return "file", unquote(parts.path)
    path = parts.path if parts.scheme in _ROOTED else parts.path.strip("/")
    return f"{parts.scheme}://{parts.netloc}", path or "/"
