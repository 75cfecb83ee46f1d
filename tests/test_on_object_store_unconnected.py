"""Spark without a connector for a store: the check says what is missing, and what Hadoop is told of a store."""

import pytest
from pyspark.sql import SparkSession
from tests.engines.s3_server import Bucket
from tests.object_store.bucket_tables import SAMPLES, upload

from nightkeep.check import CheckRequest, check
from nightkeep.model import Address
from nightkeep.report import CheckStatus
from nightkeep.storage import LocalStorage, ObjectStorage
from nightkeep.storage.hadoop import hadoop_root, hadoop_settings


def test_a_check_without_the_connector_names_its_jar(spark: SparkSession, s3_bucket: Bucket) -> None:
    location = upload(SAMPLES / "delta" / "shop.db" / "accounts", s3_bucket, "t")
    found = check(CheckRequest(Address("delta", location, "t")), spark=spark)
    assert found.status is CheckStatus.ERRORED
    assert f"{location}: expected org.apache.hadoop:hadoop-aws" in str(found.reason)
    assert "no class org.apache.hadoop.fs.s3a.S3AFileSystem" in str(found.reason)


def test_hadoop_is_told_of_a_bucket_what_our_own_client_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://environment:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    told = hadoop_settings(ObjectStorage("s3://b/t"))
    assert told == {
        "fs.s3a.bucket.b.endpoint": "http://environment:1",
        "fs.s3a.bucket.b.path.style.access": "true",
        "fs.s3a.bucket.b.access.key": "id",
        "fs.s3a.bucket.b.secret.key": "secret",
        "fs.s3a.bucket.b.session.token": "token",
        "fs.s3a.bucket.b.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    }
    options = (("s3.access-key-id", "own"), ("s3.region", "r"), ("s3.secret-access-key", "other"))
    # Keys of a catalog, and not the session of another.
    assert hadoop_settings(ObjectStorage("s3://b", options)) == {
        "fs.s3a.bucket.b.endpoint": "http://environment:1",
        "fs.s3a.bucket.b.endpoint.region": "r",
        "fs.s3a.bucket.b.path.style.access": "true",
        "fs.s3a.bucket.b.access.key": "own",
        "fs.s3a.bucket.b.secret.key": "other",
    }
    assert hadoop_settings(LocalStorage("/")) == hadoop_settings(ObjectStorage("gs://b")) == {}


def test_roots_are_spelt_as_hadoop_does() -> None:
    assert [hadoop_root(root) for root in ("/", "/a b", "s3://b", "s3://b/t", "gs://b/t")] == [
        "file://", "file:///a b", "s3a://b", "s3a://b/t", "gs://b/t",
    ]  # fmt: skip
