"""Properties of an Iceberg catalog -> options of a store, and what the options are for one kind of store. Pure.

Names are those of pyiceberg and of Iceberg's S3FileIO, GCSFileIO and ADLSFileIO.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightkeep.storage.objects.renewed import Options

# The stronger one last.
_S3: Final = {
    "client.region": "region",
    "client.access-key-id": "access_key_id",
    "client.secret-access-key": "secret_access_key",
    "client.session-token": "token",
    "s3.region": "region",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "token",
    "s3.endpoint": "endpoint",
    "s3.session-token-expires-at-ms": "expires_at_ms",
}
_GS: Final = {
    "gcs.service.host": "endpoint",
    "gcs.oauth2.token": "token",
    "gcs.oauth2.token-expires-at": "expires_at_ms",
}
_ABFSS: Final = {
    "adls.connection-string": "connection_string",
    "adls.auth.shared-key.account.name": "account_name",
    "adls.auth.shared-key.account.key": "account_key",
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.account-host": "host",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
    "adls.token": "token",
    "adls.sas-token": "sas_token",
}
_OF_ACCOUNT: Final = {"adls.sas-token.": "sas_token", "adls.sas-token-expires-at-ms.": "expires_at_ms"}
"""Names that end in an account, or in its host; they are stronger than those of any account."""
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {"s3": _S3, "gs": _GS, "abfss": _ABFSS}
_PLACES: Final = frozenset({"region", "endpoint", "account_name", "host", "tenant_id"})
"""What is no credential, and belongs to none."""
_KEYS: Final = frozenset({"access_key_id", "account_key", "sas_token", "client_secret", "connection_string"})
"""What gives access by itself, besides tokens, which of S3 belong to a key."""
_PARTS: Final = {
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "SharedAccessSignature": "sas_token",
    "BlobEndpoint": "endpoint",
}
"""Of Azure's connection strings."""


def relevant(properties: Mapping[str, str]) -> Options:
    """Those of a catalog's properties that are needed to reach its store, such as `s3.endpoint`."""
    return tuple(sorted((name, value) for name, value in properties.items() if _meaning(name) and value))


def gives_keys(properties: Mapping[str, str]) -> bool:
    """Whether a catalog's properties name keys to a store."""
    return any(_is_key(name) for name in properties)


def without_keys(properties: Mapping[str, str]) -> Mapping[str, str]:
    """A catalog's properties without keys to a store, and without all that belongs to keys."""
    return {name: value for name, value in properties.items() if (_meaning(name) or "region") in _PLACES}


def given(scheme: str, options: Options, account: str = "") -> dict[str, str]:
    """Settings of a store of the scheme by short names, such as `endpoint`. Of several accounts, those of `account`."""
    names = _NAMES[scheme]
    places = list(names)
    own = sorted((option for option in options if option[0] in names), key=lambda option: places.index(option[0]))
    settings = {names[name]: value for name, value in own}
    for part in settings.pop("connection_string", "").split(";"):
        name, _, value = part.partition("=")
        if value and name in _PARTS:
            settings.setdefault(_PARTS[name], value)
    if scheme != "abfss":
        return settings
    account = account or settings.get("account_name", "")
    of_account = {
        meaning: value
        for name, value in options
        for prefix, meaning in _OF_ACCOUNT.items()
        if name.startswith(prefix) and name.removeprefix(prefix).partition(".")[0] == account
    }
    return settings | of_account


def _meaning(name: str) -> str | None:
    for names in _NAMES.values():
        if name in names:
            return names[name]
    return next((meaning for prefix, meaning in _OF_ACCOUNT.items() if name.startswith(prefix)), None)


def _is_key(name: str) -> bool:
    meaning = _meaning(name)
    return meaning in _KEYS or (meaning == "token" and name not in _S3)
