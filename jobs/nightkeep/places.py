"""The place of reports -> its store, and the address of one file -> its content.

A place is a local path, or an address such as `s3://bucket/prefix` or `hdfs://namenode:8020/folder`.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from nightkeep.errors import UsageError
from nightkeep.redaction import redact
from nightkeep.storage.hdfs.names import SCHEME as HDFS
from nightkeep.storage.kept import KeptFiles
from nightkeep.storage.local.kept import KeptOnDisk
from nightkeep.storage.objects.names import SCHEMES

_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def report_store(place: str | Path) -> KeptFiles:
    """The store of a place. Nothing is read or made. Raises UsageError for an address that no store here has."""
    if not is_address(place):
        return KeptOnDisk(str(place))
    scheme, _, _ = str(place).partition("://")
    if scheme == "file":
        return KeptOnDisk(unquote(urlsplit(str(place)).path))
    if scheme not in (*SCHEMES, HDFS):
        raise UsageError(
            f"{redact(str(place))}: expected a local folder for reports, or an address of "
            f"{', '.join((*SCHEMES, HDFS))}, found one of {scheme}; set --reports or NIGHTKEEP_REPORTS"
        )
    # DAG files import this module, and clients of stores take longer to import than they may take to parse.
    if scheme == HDFS:
        from nightkeep.storage.hdfs.kept import kept_in_hdfs  # noqa: PLC0415 -- pyarrow

        return kept_in_hdfs(str(place))
    from nightkeep.storage.objects.kept import kept_in_bucket  # noqa: PLC0415 -- clients of buckets

    return kept_in_bucket(str(place))


def reports_place(place: str | Path) -> str:
    """The place of the documents as it was given. Raises UsageError for an address that no store here has."""
    report_store(place)
    return str(place)


def absolute(address: str) -> str:
    """The address of a file for other folders to work in."""
    return address if is_address(address) else os.path.abspath(address)


def is_address(place: str | Path) -> bool:
    """Whether a place is an address, and not a local path."""
    return bool(_ADDRESS.match(str(place)))


def located(address: str | Path) -> tuple[KeptFiles, str]:
    """The store and the name of one file."""
    if is_address(address):
        folder, _, name = str(address).rpartition("/")
        return report_store(folder), name
    folder, name = os.path.split(address)
    return KeptOnDisk(folder), name


def is_kept(address: str | Path) -> bool:
    """Whether there is such a file. Raises OSError if the store does not answer."""
    store, name = located(address)
    return any(each.name == name for each in store.list(""))


def write_file(address: str | Path, text: str) -> str:
    """Create or replace one file at once. Returns its address."""
    store, name = located(address)
    store.write(name, text.encode("utf-8", "backslashreplace"))
    return store.address(name)


def read_text(address: str | Path) -> str | None:
    """The content of one file; None if there is none. Raises OSError if the store does not answer."""
    store, name = located(address)
    try:
        return store.read(name).data.decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def remove_file(address: str | Path) -> None:
    """Remove one file, if it is there."""
    store, name = located(address)
    store.remove(name, read=None)


def forget_old(store: KeptFiles, folder: str, *, seconds: float) -> None:
    """Remove the JSON files of a folder that were written so long ago, as far as that works."""
    with suppress(OSError):
        for old in store.list(folder):
            if time.time() - old.modified_ns / 1e9 > seconds and old.name.endswith((".json", ".hand", ".end")):
                store.remove("/".join(filter(None, [folder, old.name])), read=None)
