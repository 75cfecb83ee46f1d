"""Locations of prefixes of buckets, and names that their objects can have."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from nightkeep.errors import AddressError

SCHEMES: Final = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfss"}
"""Schemes of object stores, each with its common name."""

# Characters that the client refuses in a key.
_UNREADABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
# The limit of S3 and GCS, in bytes. Azure allows as many characters.
_MAX_KEY: Final = 1024


@lru_cache(maxsize=64)
def split_location(location: str) -> tuple[str, str, str]:
    """Scheme, authority and prefix of a location. Nothing is decoded, and `?` and `#` have no meaning, as in keys.

    Raises AddressError for a prefix that no folder can have.
    """
    scheme, _, rest = location.partition("://")
    authority, _, prefix = rest.partition("/")
    prefix = prefix.rstrip("/")
    if "@" in authority and SCHEMES.get(scheme) in ("s3", "gs"):
        raise AddressError(f"{scheme}://: expected a bucket, found user info: credentials belong into the environment")
    if scheme not in SCHEMES or not authority:
        raise AddressError(f"{location}: expected one of {', '.join(SCHEMES)} and a bucket")
    if prefix and not is_key(prefix, SCHEMES[scheme]):
        raise AddressError(f"{location}: expected a folder without empty, '.' or '..' parts in its path")
    return SCHEMES[scheme], authority, prefix


def is_key(name: str, scheme: str = "") -> bool:
    """Whether the client uses `name` unchanged as a key, and a store of the scheme keeps it so."""
    valid = len(name) <= _MAX_KEY and not _UNREADABLE.search(name)
    # Azure makes a slash of it.
    if scheme == "abfss" and "\\" in name:
        return False
    return valid and not {"", ".", ".."} & set(name.split("/"))
