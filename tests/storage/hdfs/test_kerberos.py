"""A cluster of HDFS that asks for Kerberos and encrypts what it sends: who has a keytab or a token has access."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drivers.hdfs_cluster import HdfsCluster
from tests.object_store.bucket_tables import SAMPLES, upload_to_hdfs
from tests.object_store.in_bucket import InBucket

from nightkeep.model import Operation, Outcome
from nightkeep.storage.hdfs import client as hdfs_client
from nightkeep.storage.hdfs.names import split_hdfs
from nightkeep.storage.hdfs.store import HdfsStorage

pytestmark = [pytest.mark.slow, pytest.mark.extended]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    with HdfsCluster(kerberos=tmp_path_factory.mktemp("kdc")) as running:
        yield running


@pytest.fixture
def store(cluster: HdfsCluster, monkeypatch: pytest.MonkeyPatch) -> HdfsStorage:
    monkeypatch.setattr(hdfs_client, "ATTEMPTS", 1)
    monkeypatch.setattr(hdfs_client, "FIRST_WAIT_MS", 1)
    hdfs_client._client.cache_clear()
    return HdfsStorage(cluster.folder())


def owner(store: HdfsStorage, name: str) -> str:
    authority, path = split_hdfs(f"{store.root}/{name}")
    return hdfs_client.client(authority).get_file_info(f"/{path}").owner


def sign_in(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_a_table_is_maintained_by_who_has_a_keytab(
    store: HdfsStorage, cluster: HdfsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in({**cluster.signed_in(), "HADOOP_USER_NAME": "stranger"}, monkeypatch)
    place = upload_to_hdfs(SAMPLES / "delta/shop.db/clicks", f"{store.root}/clicks")
    table = InBucket(place, Operation.OPTIMIZE, "_delta_log", tmp_path)
    base = table.latest()
    care = table.care()
    assert (care.outcome, care.reason, table.latest()) == (Outcome.VERIFIED, None, base + 1)
    assert owner(store, f"clicks/_delta_log/{table.name(base + 1)}") == "keeper"


def test_a_delegation_token_is_as_good(
    store: HdfsStorage, cluster: HdfsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.write_token(tmp_path / "token")
    unsigned = {**cluster.signed_in(), "KRB5_CLIENT_KTNAME": "/nowhere", "KRB5CCNAME": f"FILE:{tmp_path}/none"}
    sign_in({**unsigned, "HADOOP_TOKEN_FILE_LOCATION": str(tmp_path / "token")}, monkeypatch)
    store.put("f", b"1")
    assert (store.read("f"), owner(store, "f")) == (b"1", "keeper")


def test_who_did_not_sign_in_learns_how(
    store: HdfsStorage, cluster: HdfsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match=r"ended the connection .*; if it asks for Kerberos, set HADOOP_CONF_DIR to"):
        store.put("f", b"1")
    unsigned = {**cluster.signed_in(), "KRB5_CLIENT_KTNAME": "/nowhere", "KRB5CCNAME": f"FILE:{tmp_path}/none"}
    sign_in(unsigned, monkeypatch)
    with pytest.raises(PermissionError, match=r"asks for Kerberos .*NO_CRED.*, and run kinit or name a keytab"):
        store.put("f", b"1")
