"""Coordinates and sources -> jars and classes in the cache. Nothing is built twice from the same input."""

import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark

# Of a JVM that runs each thing once or twice: the second compiler costs more than it saves, and without it Java makes
# the code cache so small that a Spark session throws compiled code away as fast as it compiles more.
# The bytes of released jars need no proof either. Most objects die young, and classes never do: without a size to begin
# with, the whole heap is collected each time that they need more room.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseSerialGC",
    "-XX:NewRatio=1",
    "-XX:MetaspaceSize=256m",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)

# Of Spark over a handful of rows: compiling a query, planning it anew after each stage and describing it for a page
# that nobody sees take longer than running it.
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
}

_REPOSITORY = Path(__file__).parents[2]
_FETCH_SECONDS = 900
_COMPILE_SECONDS = 300
_LISTEN_SECONDS = 60.0
_LOOKS_PER_SECOND = 20


class ToolMissing(RuntimeError):
    """A program the test engines are built with is not installed; the message names the package."""


def cache_dir() -> Path:
    """$NIGHTKEEP_CACHE, else ~/.cache/nightkeep; created."""
    chosen = os.environ.get("NIGHTKEEP_CACHE")
    path = Path(chosen) if chosen else Path.home() / ".cache" / "nightkeep"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One process at a time makes what is called `name`: tests run in several, and all of them need it first."""
    with (cache_dir() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ToolMissing(f"{name}: not on PATH; the test engines need it (Debian and Ubuntu: {package})")
    return found


def fetch_jar(coordinates: str) -> Path:
    """group:artifact:version -> the jar in the cache, fetched by Maven if it is not there."""
    _, artifact, version = coordinates.split(":")
    jars = cache_dir() / "jars"
    jar = jars / f"{artifact}-{version}.jar"
    # Maven's own repository is not safe for two at once either.
    with alone("jars"), tempfile.TemporaryDirectory(dir=cache_dir()) as scratch:
        if jar.exists():
            return jar
        options = (f"-Dartifact={coordinates}", f"-DoutputDirectory={scratch}", "-Dtransitive=false")
        command = [program("mvn", "maven"), "-q", "-B", "dependency:copy", *options]
        _run(command, f"Maven could not fetch {coordinates}", _FETCH_SECONDS)
        jars.mkdir(exist_ok=True)
        (Path(scratch) / jar.name).replace(jar)
    return jar


def fetch_jars(name: str, coordinates: Sequence[str]) -> tuple[Path, ...]:
    """Exactly these jars in a folder of the cache, fetched by Maven at once if they are not there."""
    found = _fetched(name, _project(coordinates, _NOTHING_ELSE))
    assert len(found) == len(coordinates), f"{name}: expected {len(coordinates)} jars, found {len(found)}"
    return found


def fetch_closure(name: str, coordinates: Sequence[str]) -> tuple[Path, ...]:
    """These jars and all that they depend on: for a process that has none of Spark's jars."""
    return _fetched(name, _project(coordinates, ""))


def _fetched(name: str, project: str) -> tuple[Path, ...]:
    folder = cache_dir() / name
    with alone(name):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir()) as scratch:
                file, jars = Path(scratch, "pom.xml"), Path(scratch, "jars")
                file.write_text(project)
                # Maven's own repository is not safe for two at once.
                with alone("jars"):
                    command = [program("mvn", "maven"), "-q", "-B", "-f", str(file), "dependency:copy-dependencies"]
                    _run([*command, f"-DoutputDirectory={jars}"], f"Maven could not fetch {name}", _FETCH_SECONDS)
                jars.rename(folder)
    return tuple(sorted(folder.glob("*.jar")))


_NOTHING_ELSE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
"""What the jars depend on is among them, or Spark's."""


def _project(coordinates: Sequence[str], exclusions: str) -> str:
    entries = []
    for each in coordinates:
        group, artifact, version = map(escape, each.split(":"))
        told = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        entries.append(f"<dependency>{told}{exclusions}</dependency>")
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>nightkeep.tests</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{''.join(entries)}</dependencies></project>"
    )


def spark_jars() -> str:
    """A class path entry with Spark's own jars: they bring Hadoop, which Paimon and Iceberg expect."""
    return str(Path(pyspark.__file__).parent / "jars" / "*")


def python_environment(scratch: str) -> dict[str, str]:
    """Of a Python that runs a module of this repository: nothing else of the calling one may be imported there."""
    return {**os.environ, "PYTHONPATH": str(_REPOSITORY), "TMPDIR": scratch, "TZ": "UTC"}


def spark_environment(scratch: str) -> dict[str, str]:
    """Nothing of another Spark in the calling environment; its clock in UTC, its addresses on this machine."""
    plain = python_environment(scratch).items()
    others = {name: value for name, value in plain if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {**others, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def compile_java(sources: Path, class_path: Sequence[str]) -> Path:
    """Every .java file of a folder -> a folder of classes, named by the hash of sources and class path."""
    files = sorted(sources.glob("*.java"))
    digest = hashlib.sha256("\0".join(class_path).encode())
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    classes = cache_dir() / "classes" / digest.hexdigest()[:20]
    if classes.exists():
        return classes
    javac = program("javac", "openjdk-17-jdk-headless")
    classes.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:
        built = Path(scratch) / "classes"
        options = ["-nowarn", "-d", str(built), "-cp", os.pathsep.join(class_path)]
        _run([javac, *options, *map(str, files)], f"javac could not compile {sources}", _COMPILE_SECONDS)
        try:
            built.rename(classes)
        except OSError:
            # Another session was faster: its classes are as good.
            if not classes.exists():
                raise
    return classes


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(int(_LISTEN_SECONDS * _LOOKS_PER_SECOND)):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=_LISTEN_SECONDS).close()
            return
        except ConnectionRefusedError:
            pass
        try:
            process.wait(1 / _LOOKS_PER_SECOND)
        except subprocess.TimeoutExpired:
            continue
        break
    said = log.read_text(errors="replace")[-4000:]
    raise RuntimeError(
        f"{process.args!r}: expected it to listen on port {port}, found status {process.poll()}:\n{said}"
    )


def _run(command: Sequence[str], failure: str, seconds: float) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{failure}:\n{(done.stdout + done.stderr)[-4000:]}")
