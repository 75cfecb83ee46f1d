"""A metastore's address -> the settings of its client: those of a catalog that pyiceberg knows, if any asks it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.utils.config import Config

from nightkeep.errors import AddressError
from nightkeep.redaction import learn

_GLUE: Final = "glue://"
_REGIONS: Final = ("glue.region", "client.region")


def settings_of(metastore: str) -> dict[str, Any]:
    """Settings as of a catalog of pyiceberg: Kerberos, endpoints and keys are set there. Raises AddressError."""
    catalog = catalog_of(metastore)
    own = {} if catalog is None else _stated(Config(), catalog)
    learn(own)
    if metastore.startswith(_GLUE):
        return {"type": "glue", "glue.region": metastore.removeprefix(_GLUE), **own}
    return {**own, "type": "hive", "uri": metastore}


def catalog_of(metastore: str) -> str | None:
    """The first catalog, by name, of pyiceberg's configuration that asks this metastore. Raises AddressError."""
    config = Config()
    names = sorted(config.get_known_catalogs())
    return next((name for name in names if _asks(_stated(config, name), metastore)), None)


def _stated(config: Config, name: str) -> Mapping[str, Any]:
    try:
        return config.get_catalog_config(name) or {}
    except ValueError as failure:
        raise AddressError(f"catalog {name}: expected settings of a catalog, found {failure}") from failure


def _asks(settings: Mapping[str, Any], metastore: str) -> bool:
    kind, uri = str(settings.get("type", "")).lower(), str(settings.get("uri", ""))
    if metastore.startswith(_GLUE):
        stated = next((str(settings[name]) for name in _REGIONS if name in settings), None)
        # A catalog of another account has other tables.
        own = "glue.id" not in settings
        return kind == "glue" and own and metastore == f"{_GLUE}{stated or os.environ.get('AWS_DEFAULT_REGION')}"
    return kind in ("hive", "") and _servers(uri) == _servers(metastore)


def _servers(uris: str) -> frozenset[str]:
    return frozenset(uri.strip().rstrip("/") for uri in uris.split(","))
