"""How other readers and writers reach the containers of the tests' Azure server, and signatures that give access."""

import base64
import hmac
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from obstore.fsspec import FsspecStore
from pyiceberg.io.fsspec import FsspecFileIO
from tests.drivers.azure_server import ACCOUNT, ACCOUNT_KEY, AzureContainer, AzureServer

if TYPE_CHECKING:
    from obstore.store import AzureConfig

_SAS_VERSION = "2020-12-06"


def adls_properties(server: AzureServer) -> dict[str, str]:
    """For pyiceberg's own reader of Azure."""
    return {
        "adls.account-name": ACCOUNT,
        "adls.account-key": ACCOUNT_KEY,
        "adls.blob-storage-authority": urlsplit(server.endpoint).netloc,
        "adls.blob-storage-scheme": "http",
        "py-io-impl": "tests.object_store.azure_tables.BlobsIO",
    }


class BlobsIO(FsspecFileIO):
    """For pyiceberg: its own ways to Azure take a DFS endpoint, or a package that is not among ours."""

    def _get_fs(self, scheme: str, hostname: str | None = None) -> FsspecStore:
        own = self.properties
        endpoint = f"{own['adls.blob-storage-scheme']}://{own['adls.blob-storage-authority']}/{ACCOUNT}"
        config: AzureConfig = {"endpoint": endpoint, "account_key": own["adls.account-key"]}
        return FsspecStore("abfss", config=config, client_options={"allow_http": True})


def delta_rs_azure(server: AzureServer) -> dict[str, str]:
    """For delta-rs's own reader of Azure."""
    names = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY, "allow_http": "true"}
    return {**names, "azure_storage_endpoint": f"{server.endpoint}/{ACCOUNT}"}


def signature(container: AzureContainer, *, seconds: float) -> str:
    """All rights to a container for so long (Azure Storage: create a service SAS)."""
    ends = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    rights, place = "racwdl", f"/blob/{ACCOUNT}/{container.name}"
    signed = [rights, "", ends, place, "", "", "", _SAS_VERSION, "c", *[""] * 7]
    digest = hmac.digest(base64.b64decode(ACCOUNT_KEY), "\n".join(signed).encode(), sha256)
    fields = {"sv": _SAS_VERSION, "sr": "c", "sp": rights, "se": ends, "sig": base64.b64encode(digest).decode()}
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
