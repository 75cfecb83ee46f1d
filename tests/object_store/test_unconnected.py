"""Spark without a connector for a store: the check says what is missing, and what Hadoop is told of a store."""

import os

import pytest
from pyspark.sql import SparkSession
from tests.drivers.s3_server import REGION, Bucket, S3Server
from tests.object_store.bucket_tables import SAMPLES, upload

from nightkeep.checking.check import check
from nightkeep.errors import AddressError
from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest
from nightkeep.reports import CheckStatus
from nightkeep.storage import LocalStorage, ObjectStorage, clients, open_storage
from nightkeep.storage.hadoop import hadoop_root, hadoop_settings


def test_a_check_without_the_connector_names_its_jar(spark: SparkSession, s3_bucket: Bucket) -> None:
    location = upload(SAMPLES / "delta" / "shop.db" / "accounts", s3_bucket, "t")
    found = check(CheckRequest(Address("delta", location, "t")), spark=spark)
    assert found.status is CheckStatus.ERRORED
    assert f"{location}: expected org.apache.hadoop:hadoop-aws" in str(found.reason)
    assert "no class org.apache.hadoop.fs.s3a.S3AFileSystem" in str(found.reason)


@pytest.mark.parametrize(
    ("environment", "kind", "told"),
    [
        # Nothing listens there: no credentials are asked of a cloud.
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
            OSError,
            "s3://bucket/t/: no answer from http://127.0.0.1:1; set AWS_ENDPOINT_URL to the address of the store",
        ),
        (
            {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"},
            PermissionError,
            "s3://bucket/t/: no credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a "
            "role gives access",
        ),
    ],
)
def test_a_store_that_cannot_be_asked_is_one_sentence_that_says_what_to_set(
    environment: dict[str, str], kind: type[OSError], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(clients, "RETRIES", 1)
    for name, value in {"AWS_REGION": "us-east-1", **environment}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(kind) as raised:
        open_storage("s3://bucket/t")
    assert str(raised.value) == told


def test_a_store_that_denies_access_says_what_to_set(s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(PermissionError) as raised:
        open_storage(f"{s3_bucket.uri}/t")
    assert str(raised.value) == (
        f"{s3_bucket.uri}/t/: access denied (403 SignatureDoesNotMatch); set AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or run where a role gives access"
    )


def test_a_bucket_of_another_region_names_the_variable_and_the_region(
    s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-9")
    with pytest.raises(OSError) as raised:
        open_storage(f"{s3_bucket.uri}/t")
    told = f"{s3_bucket.uri}/t/: the bucket is in another region; set AWS_REGION to {REGION}"
    assert str(raised.value) == told


def test_a_bucket_that_is_not_there_is_not_an_empty_table(s3_server: S3Server, s3_bucket: Bucket) -> None:
    with pytest.raises(OSError) as raised:
        open_storage("s3://no-such-bucket/t")
    assert str(raised.value) == (
        f"s3://no-such-bucket/t/: no such bucket at {s3_server.endpoint}; set AWS_ENDPOINT_URL to the address of the "
        "store, or name another bucket"
    )


@pytest.mark.parametrize("endpoint", ["store.example.org", "s3://store", "http://"])
def test_an_endpoint_that_is_no_address_is_named(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(AddressError, match=f"^{endpoint}: expected http://HOST or https://HOST .* AWS_ENDPOINT_URL"):
        open_storage("s3://bucket/t")


@pytest.mark.parametrize("location", ["hdfs://namenode/t", "wasbs://c@account/t", "oss://bucket/t", "ftp://host/t"])
def test_an_address_of_another_store_is_refused_by_its_scheme(location: str) -> None:
    scheme = location.partition("://")[0]
    with pytest.raises(AddressError, match=f"{location}: expected a local path, .* found '{scheme}'"):
        open_storage(location)


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
