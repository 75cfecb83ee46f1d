"""A cluster of HDFS as a process: a namenode and a datanode of Hadoop's own MiniDFSCluster, on loopback.

Its superuser is the user of the tests and of the engines. A cluster with Kerberos has a KDC of its own, which knows one
more user, the keeper.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from os import pathsep
from pathlib import Path
from time import monotonic, sleep

from tests.drivers.json_lines import Engine
from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_jar, fetch_jars, program, spark_jars

# The shaded jar needs no other: Spark brings the version's hadoop-client-api and hadoop-client-runtime.
_CLUSTER = "org.apache.hadoop:hadoop-client-minicluster:3.4.2"
_KDC = (
    "org.apache.hadoop:hadoop-minikdc:3.4.2",
    *(
        f"org.apache.kerby:{part}:2.0.3"
        for part in (
            "kerb-admin",
            "kerb-client",
            "kerb-common",
            "kerb-core",
            "kerb-crypto",
            "kerb-identity",
            "kerb-server",
            "kerb-simplekdc",
            "kerb-util",
            "kerby-asn1",
            "kerby-config",
            "kerby-pkix",
            "kerby-util",
            "kerby-xdr",
            "token-provider",
        )
    ),
)
_ANSWER_SECONDS = 120.0


class HdfsCluster(Engine):
    """A running cluster. Faults last until they are ended."""

    def __init__(self, *, kerberos: Path | None = None) -> None:
        """With a folder for a KDC, nobody has access without a ticket."""
        kdc = fetch_jars("minikdc-3.4.2", _KDC)
        class_path = (str(fetch_jar(_CLUSTER)), *map(str, kdc), spark_jars())
        classes = compile_java(Path(__file__).parent / "java_hdfs", class_path)
        scratch = self._folder("nightkeep-hdfs-")
        java = program("java", "openjdk-17-jdk-headless")
        path = ["-cp", pathsep.join((str(classes), *class_path))]
        places = [f"-Djava.io.tmpdir={scratch}", f"-Dtest.build.data={scratch}"]
        command = [java, "-Xmx512m", *SHORT_LIVED, *places, *path, "MiniHdfs", f"{scratch}/cluster"]
        self._start([*command, *([] if kerberos is None else [str(kerberos)])], timeout=_ANSWER_SECONDS)
        self._kerberos = kerberos
        self.port = int(self._lines.request("port", {}))
        self._numbers = count(1)

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def folder(self) -> str:
        """The location of a folder that no other test has; it is not made."""
        return f"hdfs://{self.authority}/folder-{next(self._numbers)}"

    @contextmanager
    def safe_mode(self) -> Iterator[None]:
        self._lines.request("enter safe mode", {})
        try:
            yield
        finally:
            self._lines.request("leave safe mode", {})

    @contextmanager
    def no_datanode(self) -> Iterator[None]:
        self._lines.request("stop datanode", {})
        try:
            yield
        finally:
            self._lines.request("start datanode", {})

    @contextmanager
    def silent(self) -> Iterator[None]:
        """The cluster takes connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            self._await_stop()
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _await_stop(self) -> None:
        """A stopped process goes on for a moment: a thread may still answer a call."""
        until = monotonic() + _ANSWER_SECONDS
        while any(_state(thread) != "T" for thread in Path(f"/proc/{self.pid}/task").iterdir()):
            assert monotonic() < until, f"process {self.pid} was not stopped within {_ANSWER_SECONDS:g} seconds"
            sleep(0.01)

    def signed_in(self) -> Mapping[str, str]:
        """The environment of the keeper, who has a keytab."""
        assert self._kerberos is not None
        write_settings(self._kerberos / "core-site.xml", {"hadoop.security.authentication": "kerberos"})
        write_settings(self._kerberos / "hdfs-site.xml", {"dfs.data.transfer.protection": "privacy"})
        return {
            "HADOOP_CONF_DIR": str(self._kerberos),
            "KRB5_CONFIG": f"{self._kerberos}/krb5.conf",
            "KRB5_CLIENT_KTNAME": f"{self._kerberos}/keeper.keytab",
            "KRB5CCNAME": f"FILE:{self._kerberos}/tickets",
        }

    def encrypt(self, path: str) -> None:
        """Makes the folder an encryption zone."""
        self._lines.request("encrypt", {"path": path})

    def write_token(self, file: Path) -> None:
        """The keeper's delegation token, as Hadoop's `hdfs fetchdt` writes it."""
        self._lines.request("token", {"user": "keeper", "file": str(file)})

    def nameservice(self, folder: Path, name: str) -> Mapping[str, str]:
        """The environment of a client that knows the cluster by a name, as the second namenode of two."""
        names = {
            f"dfs.ha.namenodes.{name}": "gone,here",
            f"dfs.namenode.rpc-address.{name}.gone": "127.0.0.1:1",
            f"dfs.namenode.rpc-address.{name}.here": self.authority,
            f"dfs.client.failover.proxy.provider.{name}": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
            "dfs.nameservices": name,
        }
        write_settings(folder / "hdfs-site.xml", names)
        return {"HADOOP_CONF_DIR": str(folder)}


def write_settings(file: Path, values: Mapping[str, str]) -> None:
    stated = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
    file.write_text(f"<configuration>{stated}</configuration>")


def _state(thread: Path) -> str:
    """The letter of proc(5), `T` for a stopped one."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]
