"""A store -> its URI and settings for Hadoop, through which Spark reads files. Pure, except for the environment.

For each scheme of an object store, Spark needs a connector on its class path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.storage.objects.azure_settings import azure_settings, container_of
from nightkeep.storage.objects.clients import s3_settings
from nightkeep.storage.objects.google_settings import google_settings
from nightkeep.storage.objects.names import split_location
from nightkeep.storage.objects.renewed import Options, current
from nightkeep.storage.objects.store import ObjectStorage
from nightkeep.storage.verbs import Storage


@dataclass(frozen=True, slots=True)
class Connector:
    """What must be on Spark's class path: the Maven names of the `jars`, and classes that show their presence."""

    jars: str
    classes: tuple[str, ...]


CONNECTORS: Final[Mapping[str, Connector]] = {
    "s3a": Connector(
        "org.apache.hadoop:hadoop-aws of the version of Spark's Hadoop, and software.amazon.awssdk:bundle",
        ("org.apache.hadoop.fs.s3a.S3AFileSystem", "software.amazon.awssdk.services.s3.S3Client"),
    ),
    "gs": Connector(
        "com.google.cloud.bigdataoss:gcs-connector", ("com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",)
    ),
    "abfss": Connector(
        "org.apache.hadoop:hadoop-azure of the version of Spark's Hadoop",
        ("org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",),
    ),
}
"""Connectors by Hadoop's scheme."""


def hadoop_root(root: str) -> str:
    """A store's root as a URI that is not encoded and has no slash at its end. Hadoop's scheme for `s3` is `s3a`."""
    return f"file://{root.rstrip('/')}" if root.startswith("/") else root.replace("s3://", "s3a://", 1)


def hadoop_settings(storage: Storage) -> Mapping[str, str]:
    """Settings of the connector for this bucket or account only; of Google's, which has none such, for all buckets.

    Their names let Spark hide the secret ones in its output, with those of HIDDEN. Empty for other stores, and where
    only the connector's own settings have more. Sources: hadoop-aws, "Configuring different S3 buckets with Per-Bucket
    Configuration"; hadoop-azure, "Authentication"; gcs-connector, CONFIGURATION.md.
    """
    if not isinstance(storage, ObjectStorage):
        return {}
    scheme, authority, _ = split_location(storage.root)
    options = current(storage.options, storage.renewal)
    return {"s3": _s3a, "gs": _gs, "abfss": _abfss}[scheme](authority, options)


HIDDEN: Final = "account[.]key"
"""Names of secret settings that Spark does not know to be secret."""


def _s3a(bucket: str, options: Options) -> dict[str, str]:
    settings = s3_settings(options)
    properties = {f"fs.s3a.bucket.{bucket}.{name}": settings[ours] for ours, name in _S3A.items() if settings.get(ours)}
    if settings.get("endpoint"):
        properties[f"fs.s3a.bucket.{bucket}.path.style.access"] = "true"
    if settings.get("token"):
        properties[f"fs.s3a.bucket.{bucket}.aws.credentials.provider"] = _WITH_TOKEN
    return properties


def _gs(bucket: str, options: Options) -> dict[str, str]:
    """The connector takes no token. Hadoop does not find it by itself in a jar that Spark adds to a session."""
    settings = google_settings(options)
    properties = {f"fs.gs.{name}": settings[ours] for ours, name in _GCS.items() if settings.get(ours)}
    properties["fs.gs.impl"] = CONNECTORS["gs"].classes[0]
    if settings.get("key_file"):
        properties["fs.gs.auth.type"] = "SERVICE_ACCOUNT_JSON_KEYFILE"
    return properties


def _abfss(authority: str, options: Options) -> dict[str, str]:
    """The connector takes no token, and asks an endpoint of its own: the one of our client is that of blobs."""
    container = container_of(authority, options)
    settings = azure_settings(options, container.account)
    if "sas_token" in settings:
        own = {"account.auth.type": "SAS", "sas.fixed.token": settings["sas_token"].removeprefix("?")}
    elif "account_key" in settings:
        own = {"account.auth.type": "SharedKey", "account.key": settings["account_key"]}
    elif {"client_id", "client_secret", "tenant_id"} <= settings.keys():
        own = {
            "account.auth.type": "OAuth",
            "account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
            "account.oauth2.client.endpoint": f"https://login.microsoftonline.com/{settings['tenant_id']}/oauth2/token",
            "account.oauth2.client.id": settings["client_id"],
            "account.oauth2.client.secret": settings["client_secret"],
        }
    else:
        own = {}
    return {f"fs.azure.{name}.{container.host}": value for name, value in own.items()}


_S3A: Final = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "token": "session.token",
}
_GCS: Final = {"endpoint": "storage.root.url", "key_file": "auth.service.account.json.keyfile"}
_WITH_TOKEN: Final = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
