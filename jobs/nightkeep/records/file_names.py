"""Names of tables and runs -> names of files below the place of reports."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from nightkeep.model import Operation

HOLDS: Final = "holds"
PAGES: Final = "pages"
TABLE_PAGES: Final = "tables"
# No slug begins like these, as `~` is followed by hexadecimal digits.
FOUND: Final = "~found"
RESULTS: Final = "~results"
LEDGER: Final = "~ledger"
SENT: Final = "~sent"
AUDITS: Final = "~audits"
SPENT: Final = "~spent"
INDEX: Final = "~index"
SWEEPS: Final = "~sweeps"
VALUES: Final = "~values"
VERSIONS: Final = "~versions"
NO_TABLES: Final = (HOLDS, PAGES, FOUND, RESULTS, LEDGER, SENT, AUDITS, SPENT, INDEX, SWEEPS, VALUES, VERSIONS)
"""Folders that are not a table's."""

# Upper case is escaped because some file systems ignore case; a leading dot because it hides the file.
_UNSAFE = re.compile(rb"^\.|[^a-z0-9._-]")
# Common file systems allow 255 bytes in a file name. The rest is for the operation and suffixes.
_LONGEST = 160


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


def table_folder(table: str) -> str:
    """The folder of a table's documents."""
    name = slug(table)
    # No other table has a name with this letter escaped, as letters need no escape.
    return f"~{ord(name[0]):02x}{name[1:]}" if name in (HOLDS, PAGES) else name


def document_name(table: str, *, run_id: str, operation: Operation) -> str:
    """The document of a run, table and operation."""
    return f"{table_folder(table)}/{slug(run_id)}-{operation}.json"


def hold_name(table: str) -> str:
    """The hold on a table."""
    return f"{HOLDS}/{slug(table)}.json"


def is_hold(name: str) -> bool:
    """Whether a file of the folder of holds is one, and no mark or list beside it."""
    # In a slug two hexadecimal digits follow on each `~`, or a second `~`.
    return not name.endswith(("~look.json", "~releases.json"))


def look_name(table: str) -> str:
    """The mark up to which a table's history was examined."""
    # No slug ends like this, as a single `~` in a slug is followed by hexadecimal digits.
    return f"{HOLDS}/{slug(table)}~look.json"


def releases_name(table: str) -> str:
    """The releases of a table from holds."""
    return f"{HOLDS}/{slug(table)}~releases.json"


def table_page_name(table: str) -> str:
    """The page of a table, in the folder of pages."""
    return f"{TABLE_PAGES}/{table_folder(table)}.html"


def page_name(name: str) -> str:
    """A page, in the folder of pages."""
    return f"{slug(name)}.html"
