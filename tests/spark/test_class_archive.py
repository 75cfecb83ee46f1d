"""The archive of Java classes: read when it is whole and of these jars, and never at the price of a session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.drivers.toolchain import spark_environment

from nightkeep.spark.class_archive import FOLDER, archive_folder, archive_name, reading_options, sized
from nightkeep.spark.settings import OPTIONS_OF_FEW_BYTES


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A Java and two jars of Spark's, by their names, and an empty folder for the archive."""
    for file in ("java/bin/java", "spark/jars/a.jar", "spark/jars/b.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    (tmp_path / "archive").mkdir()
    return {
        "JAVA_HOME": str(tmp_path / "java"),
        "SPARK_HOME": str(tmp_path / "spark"),
        FOLDER: str(tmp_path / "archive"),
    }


def _written(environ: dict[str, str]) -> Path:
    name = archive_name(environ)
    assert name is not None
    file = Path(environ[FOLDER], sized(name, 100))
    file.write_bytes(b"x" * 100)
    return file


def test_a_whole_archive_of_these_jars_is_read(environ: dict[str, str]) -> None:
    assert reading_options(environ) == ()
    file = _written(environ)
    options = reading_options(environ)
    assert f"-XX:SharedArchiveFile={file}" in options
    assert "-XX:+VerifySharedSpaces" in options


def test_an_archive_that_was_cut_is_not_read(environ: dict[str, str]) -> None:
    os.truncate(_written(environ), 99)
    assert reading_options(environ) == ()


def test_an_archive_of_other_jars_or_of_another_java_is_not_read(environ: dict[str, str], tmp_path: Path) -> None:
    _written(environ)
    jar = tmp_path / "spark/jars/a.jar"
    before = jar.stat().st_mtime_ns
    os.utime(jar, ns=(before, before + 1_000_000_000))
    assert reading_options(environ) == ()
    os.utime(jar, ns=(before, before))
    assert reading_options(environ) != ()
    (tmp_path / "new/bin").mkdir(parents=True)
    assert reading_options({**environ, "JAVA_HOME": str(tmp_path / "new")}) == ()


def test_there_is_none_where_it_is_turned_off_or_cannot_be_named(environ: dict[str, str], tmp_path: Path) -> None:
    _written(environ)
    assert reading_options({**environ, FOLDER: "off"}) == ()
    assert archive_folder({FOLDER: "/a:b"}) is archive_folder({FOLDER: "/a b"}) is None
    assert reading_options({**environ, "SPARK_HOME": str(tmp_path)}) == ()
    assert reading_options({FOLDER: environ[FOLDER], "PATH": str(tmp_path)}) == ()
    assert archive_folder({}) == Path(sys.prefix, "share", "nightkeep")


_SESSION = """
from pyspark.sql import SparkSession
print(SparkSession.builder.master("local[1]").getOrCreate().range(7).count())
"""
_MAPPED = "source: shared objects file (top)"


@pytest.mark.slow
@pytest.mark.extended
def test_classes_come_from_the_archive_and_from_jars_where_it_is_damaged(tmp_path: Path) -> None:
    environ = {**spark_environment(str(tmp_path)), FOLDER: str(tmp_path / "archive")}
    write = [sys.executable, "-m", "nightkeep.spark.write_class_archive"]
    old = tmp_path / "archive" / "spark-classes-old-1.jsa"
    old.parent.mkdir()
    old.write_bytes(b"x")
    subprocess.run(write, env=environ, check=True, capture_output=True)
    (file,) = old.parent.iterdir()
    assert _classes_mapped(environ, tmp_path) > 5000
    file.chmod(0o600)
    with file.open("r+b") as stream:
        for place in range(1 << 20, file.stat().st_size, 1 << 20):
            stream.seek(place)
            stream.write(b"damaged")
    assert _classes_mapped(environ, tmp_path) == 0


def _classes_mapped(environ: dict[str, str], scratch: Path) -> int:
    """How many classes a session maps; it must work, and its answer must be all that is on standard output."""
    log = scratch / "classes.log"
    log.unlink(missing_ok=True)
    options = [*OPTIONS_OF_FEW_BYTES, *reading_options(environ), f"-Xlog:class+load:file={log}"]
    run = subprocess.run(
        [sys.executable, "-c", _SESSION],
        env={**environ, "SPARK_SUBMIT_OPTS": " ".join(options)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout == "7\n"
    return log.read_text().count(_MAPPED)
