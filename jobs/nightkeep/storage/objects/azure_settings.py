"""Authority, options and environment -> how to reach a container of Azure. Pure, except for the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import AddressError
from nightkeep.storage.objects.properties import given
from nightkeep.storage.objects.renewed import Options

CREDENTIALS: Final = ("account_key", "sas_token", "token", "client_secret")
# The strongest last, as the client has them.
_VARIABLES: Final = {
    "account_name": ("AZURE_STORAGE_ACCOUNT_NAME",),
    "endpoint": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
    "account_key": ("AZURE_STORAGE_MASTER_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY"),
    "sas_token": ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
    "token": ("AZURE_STORAGE_TOKEN",),
    "tenant_id": ("AZURE_AUTHORITY_ID", "AZURE_TENANT_ID", "AZURE_STORAGE_AUTHORITY_ID", "AZURE_STORAGE_TENANT_ID"),
    "client_id": ("AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"),
    "client_secret": ("AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"),
}
_OTHERS: Final = (
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_USE_AZURE_CLI",
    "AZURE_SKIP_SIGNATURE",
    "AZURE_STORAGE_USE_EMULATOR",
)
"""Variables of credentials that only the client understands."""
_CLOUD: Final = "dfs.core.windows.net"


@dataclass(frozen=True, slots=True)
class BlobContainer:
    """`host` is that of the account's files, `endpoint` the address of its blobs."""

    name: str
    account: str
    host: str
    endpoint: str


def container_of(authority: str, options: Options) -> BlobContainer:
    """The container of `CONTAINER@ACCOUNT.dfs.core.windows.net`, or of `CONTAINER` in the account that is set.

    Raises AddressError if no account is named.
    """
    name, _, host = authority.partition("@")
    settings = azure_settings(options, host.partition(".")[0])
    account = host.partition(".")[0] or settings.get("account_name", "")
    if not account:
        raise AddressError(
            f"abfss://{authority}: expected CONTAINER@ACCOUNT.{_CLOUD}, found no account; write it, or set "
            "AZURE_STORAGE_ACCOUNT_NAME"
        )
    if "." not in host:
        host = settings.get("host") or f"{account}.{_CLOUD}"
    endpoint = settings.get("endpoint") or f"https://{host.replace('.dfs.', '.blob.', 1)}"
    return BlobContainer(name, account, host, endpoint.rstrip("/"))


def azure_settings(options: Options, account: str) -> Mapping[str, str]:
    """Only what options or the environment set. Credentials of both are never mixed."""
    own = given("abfss", options, account)
    own.pop("expires_at_ms", None)
    settings = {ours: os.environ[name] for ours, names in _VARIABLES.items() for name in names if os.environ.get(name)}
    if any(name in own for name in CREDENTIALS):
        settings = {ours: value for ours, value in settings.items() if ours in ("endpoint", "account_name")}
    return {**settings, **own}


def names_credentials(options: Options, account: str) -> bool:
    """Whether options or the environment name credentials. If not, only the machine's identity gives them."""
    settings = azure_settings(options, account)
    return any(name in settings for name in CREDENTIALS) or any(os.environ.get(name) for name in _OTHERS)
