"""A Hive metastore as a process: Hive's own, of the jars that Spark brings, over Derby in memory, on loopback."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import pathsep
from pathlib import Path

from tests.drivers.toolchain import SHORT_LIVED, compile_java, free_port, program, spark_jars, wait_until_it_listens

_STOP_SECONDS = 30.0
_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "NONE",
    "hive.metastore.schema.verification": "false",
    "hive.async.log.enabled": "false",
    "hive.metastore.server.min.threads": "2",
}


@dataclass(frozen=True)
class HiveMetastore:
    """A running metastore."""

    port: int
    log: Path

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"


@contextmanager
def serve_metastore() -> Iterator[HiveMetastore]:
    """A metastore, ended with the context."""
    classes = compile_java(Path(__file__).parent / "java_hive", (spark_jars(),))
    with tempfile.TemporaryDirectory(prefix="nightkeep-hive-", ignore_cleanup_errors=True) as scratch:
        log, port = Path(scratch, "log"), free_port()
        places = {"derby.system.home": scratch, "java.io.tmpdir": scratch, "hive.metastore.warehouse.dir": scratch}
        settings = [f"-D{name}={value}" for name, value in {**_SETTINGS, **places}.items()]
        java = program("java", "openjdk-17-jdk-headless")
        path = ["-cp", pathsep.join((str(classes), spark_jars()))]
        command = [java, "-Xmx512m", *SHORT_LIVED, *settings, *path, "Metastore", "-p", str(port)]
        environment = {**os.environ, "HADOOP_USER_NAME": "nightkeep"}
        with log.open("w") as sink:
            process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT, cwd=scratch, env=environment)
        try:
            wait_until_it_listens(process, port, log)
            yield HiveMetastore(port, log)
        finally:
            process.kill()
            process.wait(_STOP_SECONDS)
