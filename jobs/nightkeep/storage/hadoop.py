"""A store -> its URI and settings for Hadoop, through which Spark reads files. Pure, except for the environment.

For each scheme of an object store, Spark needs a connector on its class path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.storage.clients import s3_settings, split_location
from nightkeep.storage.objects import ObjectStorage
from nightkeep.storage.renewed import current
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
    """S3A settings for this bucket only. Their names let Spark hide the secret ones in its output.

    Empty for other stores, whose connectors are configured elsewhere. Source: hadoop-aws, "Configuring different S3
    buckets with Per-Bucket Configuration".
    """
    if not isinstance(storage, ObjectStorage):
        return {}
    scheme, bucket, _ = split_location(storage.root)
    if scheme != "s3":
        return {}
    settings = s3_settings(current(storage.options, storage.renewal))
    properties = {f"fs.s3a.bucket.{bucket}.{name}": settings[ours] for ours, name in _S3A.items() if settings.get(ours)}
    if settings.get("endpoint"):
        properties[f"fs.s3a.bucket.{bucket}.path.style.access"] = "true"
    if settings.get("token"):
        properties[f"fs.s3a.bucket.{bucket}.aws.credentials.provider"] = _WITH_TOKEN
    return properties


_S3A: Final = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "token": "session.token",
}
_WITH_TOKEN: Final = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
