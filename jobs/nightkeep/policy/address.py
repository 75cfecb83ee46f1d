"""The text of an address -> Address. Pure: the environment and the starting folder are arguments."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping

from nightkeep.errors import AddressError
from nightkeep.model import Address
from nightkeep.model.dotted import split_name
from nightkeep.model.metastore_table import GLUE, HIVE, catalog_and_name, metastore_table

FORMATS = ("paimon", "delta", "iceberg")

NAME_PATTERN = r"^\S(.*\S)?$"
"""One line without spaces around it."""

# NAME and `:-` as in POSIX shells; `:-` gives the value for a variable that is unset or empty.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}")

# After an Azure container, `@` and the account follow; only a colon before them means a secret.
_INFO = re.compile(r"(?:s3[an]?|gs)://[^\s/]*@|(?:s3[an]?|gs)://[^/@]*:[^@]*@|[a-z0-9]+://[^/@:]*:(?!\d*/)[^@]*@")


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """`text` with every `${NAME}` and `${NAME:-default}` replaced. Values are not replaced again.

    Raises AddressError for an unset NAME without a default, and for any other `${`.
    """
    rest = _VARIABLE.sub("", text)
    if "${" in rest:
        raise AddressError(f"${{NAME}} or ${{NAME:-default}}, found {text!r}")

    def value(match: re.Match[str]) -> str:
        name, has_default, default = match[1], match[2], match[3]
        if has_default:
            return environ.get(name) or default
        if name not in environ:
            raise AddressError(f"environment variable {name} to be set or given a default, found neither")
        return environ[name]

    return _VARIABLE.sub(value, text)


def is_address(text: str) -> bool:
    """Whether the text is an address and not a name of the policy file."""
    return text.partition(":")[0] in FORMATS and ":" in text


def is_name(text: str) -> bool:
    """Whether a table can have this name."""
    return re.fullmatch(NAME_PATTERN, text) is not None and not is_address(text)


def format_of(text: str) -> str:
    """The format at the beginning of an address or its template; `unknown` if there is none."""
    return text.partition(":")[0] if is_address(text) else "unknown"


def parse_address(text: str, folder: str, *, name: str | None = None) -> Address:
    """The Address in `text`. Its location has no trailing slashes and, if it is a local path, is absolute.

    `folder` is where a relative path starts. `name` is the table's name in reports, `text` if None. Raises AddressError
    for an unknown format or a missing location.
    """
    table_format, colon, location = text.partition(":")
    if not colon or table_format not in FORMATS:
        nearest = difflib.get_close_matches(table_format, FORMATS, n=1)
        hint = f"; did you mean {nearest[0]}:?" if colon and nearest else ""
        raise AddressError(f"paimon:URI, delta:URI or iceberg:CATALOG/NAMESPACE.TABLE, found {text!r}{hint}")
    if not location.strip("/"):
        raise AddressError(f"a location after {table_format}:, found {text!r}")
    if _INFO.match(location):
        raise AddressError(f"a bucket after {table_format}:, found user info: credentials belong into the environment")
    try:
        metastore_table(location)
    except ValueError as failure:
        raise AddressError(f"{failure}") from failure
    is_path = table_format != "iceberg" and "://" not in location and not location.startswith("file:")
    where = _within(folder, location) if is_path else location.rstrip("/")
    return Address(table_format, where, name or text)


def _within(folder: str, path: str) -> str:
    """A path, or an address in the store of a folder that is one."""
    scheme, separator, place = folder.partition("://")
    if not separator or os.path.isabs(path):
        return os.path.normpath(os.path.join(folder, path))
    return f"{scheme}://{os.path.normpath(os.path.join(place, path))}"


def metastore_of(kind: str, text: str) -> str:
    """The metastore that an entry of `discover` means: `thrift://HOST:PORT`, or a region of Glue. Raises
    AddressError."""
    metastore, pattern = (text, HIVE) if kind == "hive" else (f"glue://{text}", GLUE)
    if pattern.fullmatch(metastore) is None:
        expected = "thrift://HOST:PORT" if kind == "hive" else "a region such as eu-central-1"
        raise AddressError(f"{expected}, found {text!r}")
    return metastore


def metastore_address(text: str) -> Address | None:
    """The address of a table that a metastore names; None for any other text."""
    try:
        address = parse_address(text, "/")
        return address if metastore_table(address.location) else None
    except AddressError:
        return None


def same_place(address: Address) -> tuple[str, str]:
    """A key that is equal for all spellings of one local path. Other locations are equal only if spelled equally."""
    local = re.fullmatch(r"file:(?://)?(/.*)", address.location)
    return (address.format, local[1] if local else address.location)


def names_of(address: Address) -> tuple[str, ...]:
    """The names that patterns match for a table without a name: `database.table`, then `table`."""
    if address.format == "iceberg" or metastore_table(address.location):
        _, name = catalog_and_name(address.location)
        return (name, _last(name))
    parts = [part for part in re.split(r"[/\\]", address.location) if part]
    database = parts[-2].removesuffix(".db") if len(parts) > 1 else ""
    return (f"{database}.{parts[-1]}" if database else parts[-1], parts[-1])


def _last(name: str) -> str:
    """The last part of a table's name. An invalid name is reported when the table is opened."""
    try:
        return split_name(name)[-1]
    except ValueError:
        return name
