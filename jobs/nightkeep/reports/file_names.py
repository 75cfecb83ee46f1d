"""Names of tables and runs -> names of files, and the folder that they are in."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from nightkeep.errors import UsageError

# Upper case is escaped because some file systems ignore case; a leading dot because it hides the file.
_UNSAFE = re.compile(rb"^\.|[^a-z0-9._-]")
# Common file systems allow 255 bytes in a file name. The rest is for the operation and suffixes.
_LONGEST = 160
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def reports_folder(place: str | Path) -> str:
    """The folder of the documents. Raises UsageError for the address of a store, which would be made as a folder."""
    if found := _ADDRESS.match(str(place)):
        raise UsageError(
            f"{place}: expected a local folder for reports, found an address of {found[1]}; set --reports or "
            "NIGHTKEEP_REPORTS to a folder that all machines share"
        )
    return str(place)


def slug(text: str) -> str:
    """A file name for any text: lower case letters, digits and `._-~`. Different texts have different names.

    Other UTF-8 bytes become `~` and two hex digits. A long text is cut, and its SHA-256 is added after `~~`, which
    occurs nowhere else.
    """
    raw = text.encode("utf-8", "surrogatepass")
    escaped = _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], raw).decode("ascii")
    if raw and len(escaped) <= _LONGEST:
        return escaped
    return f"{escaped[: _LONGEST - 66]}~~{hashlib.sha256(raw).hexdigest()}"
