"""Spark without a connector for a store: the check says what is missing, and what Hadoop is told of a store."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.azure_server import AzureContainer, AzureServer
from tests.drivers.s3_server import REGION, Bucket, S3Server
from tests.object_store.bucket_tables import SAMPLES, upload

from nightkeep.checking.check import check
from nightkeep.errors import AddressError
from nightkeep.model import Address
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.storage import LocalStorage, open_storage
from nightkeep.storage.objects import clients
from nightkeep.storage.objects.hadoop import hadoop_root, hadoop_settings
from nightkeep.storage.objects.properties import relevant
from nightkeep.storage.objects.store import ObjectStorage


def test_a_check_without_the_connector_names_its_jar(spark: SparkSession, s3_bucket: Bucket) -> None:
    location = upload(SAMPLES / "delta" / "shop.db" / "accounts", s3_bucket, "t")
    found = check(CheckRequest(Address("delta", location, "t")), spark=spark)
    assert found.status is CheckStatus.ERRORED
    assert f"{location}: expected org.apache.hadoop:hadoop-aws" in str(found.reason)
    assert "no class org.apache.hadoop.fs.s3a.S3AFileSystem" in str(found.reason)


GOOGLE = "set GOOGLE_APPLICATION_CREDENTIALS to the file of a key that has access, or run where a role gives access"
AZURE = "set AZURE_STORAGE_ACCOUNT_KEY or another credential that has access, or run where an identity gives access"
ACCOUNT = "abfss://c@account.dfs.core.windows.net"
NOWHERE = "http://127.0.0.1:1"
DOWN = f"no answer from {NOWHERE} within 0 s; if it is not down"
HIDDEN = DOWN.replace(NOWHERE, "the store")


@pytest.mark.parametrize(
    ("environment", "location", "kind", "told"),
    [
        # Nothing listens there: no credentials are asked of a cloud.
        (
            {"AWS_ENDPOINT_URL": NOWHERE, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
            "s3://bucket/t",
            OSError,
            f"s3://bucket/t/: {DOWN}, set AWS_ENDPOINT_URL to the address of the store",
        ),
        (
            {"AWS_METADATA_ENDPOINT": NOWHERE},
            "s3://bucket/t",
            PermissionError,
            "s3://bucket: no credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a "
            "role gives access",
        ),
        (
            {"GOOGLE_BASE_URL": NOWHERE, "GOOGLE_BEARER_TOKEN": "a"},
            "gs://bucket/t",
            OSError,
            f"gs://bucket/t/: {DOWN}, set GOOGLE_BASE_URL, or unset it for Google's own store",
        ),
        ({}, "gs://bucket/t", PermissionError, f"gs://bucket: no credentials found; {GOOGLE}"),
        (
            {"GOOGLE_BASE_URL": "store.example.org", "GOOGLE_BEARER_TOKEN": "a"},
            "gs://bucket/t",
            AddressError,
            "store.example.org: expected http://HOST or https://HOST as the address of a store, found neither; "
            "set GOOGLE_BASE_URL, or gcs.service.host of the catalog",
        ),
        (
            {"AZURE_STORAGE_ENDPOINT": f"{NOWHERE}/account", "AZURE_STORAGE_ACCOUNT_KEY": "YQ=="},
            f"{ACCOUNT}/t",
            OSError,
            f"{ACCOUNT}/t/: {DOWN}, set AZURE_STORAGE_ENDPOINT, or unset it for Azure's own store",
        ),
        (
            {"AZURE_STORAGE_ENDPOINT": f"{NOWHERE}/account", "AZURE_STORAGE_SAS_TOKEN": "sig=1"},
            f"{ACCOUNT}/t",
            OSError,
            f"{ACCOUNT}/t/: {HIDDEN}, set AZURE_STORAGE_ENDPOINT, or unset it for Azure's own store",
        ),
        ({}, f"{ACCOUNT}/t", PermissionError, f"{ACCOUNT}: no credentials found; {AZURE}"),
        (
            {
                "AZURE_TENANT_ID": "a",
                "AZURE_CLIENT_ID": "b",
                "AZURE_CLIENT_SECRET": "c",
                "AZURE_AUTHORITY_HOST": "https://127.0.0.1:1",
            },
            f"{ACCOUNT}/t",
            PermissionError,
            f"{ACCOUNT}/t/: https://127.0.0.1:1 gives no token (error sending request); {AZURE}",
        ),
        (
            {"AZURE_STORAGE_ACCOUNT_KEY": "no key"},
            f"{ACCOUNT}/t",
            AddressError,
            f"{ACCOUNT}: expected settings of a store, found Generic MicrosoftAzure error: Invalid Access Key: "
            "Invalid symbol 32, offset 2.",
        ),
        (
            {"AZURE_STORAGE_ACCOUNT_KEY": "YQ=="},
            "abfss://c/t",
            AddressError,
            "abfss://c: expected CONTAINER@ACCOUNT.dfs.core.windows.net, found no account; write it, or set "
            "AZURE_STORAGE_ACCOUNT_NAME",
        ),
    ],
)
def test_a_store_that_cannot_be_asked_is_one_sentence_that_states_what_to_set(
    environment: dict[str, str],
    location: str,
    kind: type[Exception],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(clients, "RETRIES", 1)
    # No file of gcloud, and no service of a cloud's machine.
    nobody = {"HOME": str(tmp_path), "AZURE_MSI_ENDPOINT": f"{NOWHERE}/metadata/identity/oauth2/token"}
    nobody |= {"GCE_METADATA_HOST": "127.0.0.1:1", "GCE_METADATA_IP": "127.0.0.1:1", "AWS_REGION": "us-east-1"}
    for name, value in {**nobody, **environment}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(kind) as raised:
        open_storage(location)
    assert str(raised.value) == told


def test_a_machine_of_a_cloud_whose_role_gives_nothing_states_what_to_set(
    azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Azurite stands for the machine's service, which answers something else."""
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(clients, "RETRIES", 1)
    place = azure_server.endpoint.removeprefix("http://")
    monkeypatch.setenv("AZURE_MSI_ENDPOINT", f"{azure_server.endpoint}/metadata/identity/oauth2/token")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
        monkeypatch.setenv(name, place)
    for location, advice in (("gs://bucket/t", GOOGLE), (f"{ACCOUNT}/t", AZURE)):
        with pytest.raises(PermissionError) as raised:
            open_storage(location)
        assert str(raised.value) == f"{location}/: no credentials found; {advice}"


def test_azure_states_what_it_denies_and_what_it_has_not(
    azure_server: AzureServer, azure_container: AzureContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = azure_container.uri.replace(azure_container.name, "no-such-container")
    for act in (ObjectStorage(other).read, ObjectStorage(other).list, lambda name: open_storage(f"{other}/{name}")):
        with pytest.raises(OSError, match=r"no such container at http://127.0.0.1.*, or name another container$"):
            act("t")
    for name, value in (("AZURE_STORAGE_ACCOUNT_KEY", "YQ=="), ("AZURE_STORAGE_SAS_TOKEN", "sv=2021-12-02&sig=a")):
        monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY", raising=False)
        monkeypatch.setenv(name, value)
        with pytest.raises(PermissionError) as raised:
            open_storage(f"{azure_container.uri}/t")
        assert str(raised.value) == f"{azure_container.uri}/t/: access denied (403 AuthorizationFailure); {AZURE}"


def test_a_store_that_denies_access_states_what_to_set(s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("location", ["viewfs://namenode/t", "wasbs://c@account/t", "oss://bucket/t", "ftp://host/t"])
def test_an_address_of_another_store_is_refused_by_its_scheme(location: str) -> None:
    scheme = location.partition("://")[0]
    with pytest.raises(AddressError, match=f"{location}: expected a local path, .* found '{scheme}'"):
        open_storage(location)


def test_hadoop_gets_of_a_bucket_what_our_own_client_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert hadoop_settings(LocalStorage("/")) == {}


HOST = "account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("environment", "options", "told"),
    [
        (
            {"AZURE_STORAGE_ACCOUNT_KEY": "key"},
            {},
            {f"account.auth.type.{HOST}": "SharedKey", f"account.key.{HOST}": "key"},
        ),
        (
            {"AZURE_STORAGE_ACCOUNT_KEY": "key"},
            {f"adls.sas-token.{HOST}": "?sig=a", "adls.sas-token.other": "sig=b", "adls.sas-token": "sig=c"},
            {f"account.auth.type.{HOST}": "SAS", f"sas.fixed.token.{HOST}": "sig=a"},
        ),
        (
            {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"},
            {},
            {
                f"account.auth.type.{HOST}": "OAuth",
                f"account.oauth.provider.type.{HOST}": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                f"account.oauth2.client.endpoint.{HOST}": "https://login.microsoftonline.com/t/oauth2/token",
                f"account.oauth2.client.id.{HOST}": "c",
                f"account.oauth2.client.secret.{HOST}": "s",
            },
        ),
        (
            {"AZURE_CLIENT_SECRET": "of another"},
            {"adls.connection-string": "AccountName=account;AccountKey=key==;EndpointSuffix=core.windows.net"},
            {f"account.auth.type.{HOST}": "SharedKey", f"account.key.{HOST}": "key=="},
        ),
        ({"AZURE_STORAGE_TOKEN": "no setting takes it"}, {}, {}),
    ],
)
def test_hadoop_gets_of_an_account_what_our_own_client_goes_by(
    environment: dict[str, str], options: dict[str, str], told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = hadoop_settings(ObjectStorage(f"abfss://c@{HOST}/t", relevant(options)))
    assert found == {f"fs.azure.{name}": value for name, value in told.items()}


def test_hadoop_gets_of_google_s_store_what_our_own_client_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_BASE_URL", "http://environment:1")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/key.json")
    told = {"fs.gs.storage.root.url": "http://environment:1", "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE"}
    told |= {"fs.gs.auth.service.account.json.keyfile": "/key.json"}
    told["fs.gs.impl"] = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
    assert hadoop_settings(ObjectStorage("gs://b")) == told
    options = {"gcs.oauth2.token": "of a catalog", "gcs.service.host": "http://catalog:1"}
    told = {"fs.gs.storage.root.url": "http://catalog:1", "fs.gs.impl": told["fs.gs.impl"]}
    assert hadoop_settings(ObjectStorage("gs://b", relevant(options))) == told


def test_roots_are_spelt_as_hadoop_does() -> None:
    assert [hadoop_root(root) for root in ("/", "/a b", "s3://b", "s3://b/t", "gs://b/t")] == [
        "file://",
        "file:///a b",
        "s3a://b",
        "s3a://b/t",
        "gs://b/t",
    ]
