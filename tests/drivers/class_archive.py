"""Spark's classes as the JVM maps them into memory, made once per environment: a session starts in half the time.

Java 17, "Class Data Sharing", dynamic archives. A JVM whose class path is another one, or that finds no archive, loads
classes from jars as ever: nothing has to wait for it, and nothing depends on it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from tests.drivers.toolchain import FEW_ROWS, SHORT_LIVED, cache_dir, spark_environment

_END_SECONDS = 120.0


def archive() -> Path | None:
    """Where the archive is, or will be: one for each Java and each place of Spark's jars. None without Java, which
    many tests do without."""
    java = shutil.which("java")
    if java is None:
        return None
    jars = Path(pyspark.__file__).parent / "jars"
    told = "\0".join([str(Path(java).resolve()), *(f"{jar} {jar.stat().st_size}" for jar in sorted(jars.iterdir()))])
    return cache_dir() / f"spark-classes-{hashlib.sha256(told.encode()).hexdigest()[:20]}.jsa"


def options() -> tuple[str, ...]:
    """Of a JVM of Spark's that lives as long as a test or two; it says nothing of an archive that does not fit."""
    held = archive()
    return SHORT_LIVED if held is None else (*SHORT_LIVED, f"-XX:SharedArchiveFile={held}", "-Xlog:disable")


def building() -> subprocess.Popen[bytes] | None:
    """A process that makes the archive, to be ended by the caller; None where there is one, or will be none."""
    target = archive()
    if target is None or target.exists():
        return None
    command = [sys.executable, "-m", __name__, str(target)]
    return subprocess.Popen(
        command, env=spark_environment(str(cache_dir())), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _build(target: Path) -> None:
    """A short session, whose JVM writes down at its end what it has loaded."""
    _remove_left(target)
    made = target.with_name(f"{target.name}.{os.getpid()}")
    settings = {**FEW_ROWS, "spark.ui.enabled": "false"}
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*(f"--conf {k}={v}" for k, v in settings.items()), "pyspark-shell"])
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"])
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    rows.join(rows.groupBy("id").count(), on="id", how="left_anti").orderBy("name").collect()
    spark.stop()
    # Without its input a gateway ends.
    process.stdin.close()
    try:
        process.wait(_END_SECONDS)
        made.replace(target)
    finally:
        process.kill()
        with suppress(FileNotFoundError):
            made.unlink()


def _remove_left(target: Path) -> None:
    """Archives of any environment that processes did not finish which are gone: each takes over 100 MB."""
    for left in target.parent.glob("spark-classes-*.jsa.*"):
        if not Path(f"/proc/{left.suffix[1:]}").exists():
            left.unlink(missing_ok=True)


if __name__ == "__main__":
    _build(Path(sys.argv[1]))
