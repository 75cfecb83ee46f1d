"""Requests -> a JVM with one release of Paimon Java, from 0.5 to 2.0 -> its answers."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_jar, program, spark_jars

RELEASES: Mapping[str, str] = {
    **{release: f"org.apache.paimon:paimon-bundle:{release}.0-incubating" for release in ("0.5", "0.6", "0.7")},
    **{
        release: f"org.apache.paimon:paimon-bundle:{release}"
        for release in ("0.8.2", "0.9.0", "1.0.1", "1.1.1", "1.2.0", "1.3.1")
    },
    "2.0.0": "org.apache.paimon:paimon-flink-2.0:2.0.0",
}
"""The jar of each release."""

Command = Sequence[str]
"""A verb and its arguments, as Release.java reads them."""
_SECONDS = 300


def create(
    table: Path,
    columns: Mapping[str, str],
    *,
    keys: Sequence[str] = (),
    partition: Sequence[str] = (),
    options: Mapping[str, str],
) -> Command:
    described = ";".join(f"{name}:{kind}" for name, kind in columns.items())
    return ("create", str(table), described, ",".join(keys), ",".join(partition), _options(options))


def write(table: Path, kind: str, ids: range, version: str) -> Command:
    """One commit of rows whose values follow from their ids and the version."""
    return ("write", str(table), kind, str(ids.start), str(ids.stop), version)


def compact(table: Path, *, full: bool = False) -> Command:
    """One commit that compacts every bucket."""
    return ("compact", str(table), str(full).lower())


def read(table: Path, **options: str) -> Command:
    """Answers with the rows as text, sorted."""
    return ("read", str(table), _options({name.replace("_", "-"): value for name, value in options.items()}))


def run(release: str, commands: Sequence[Command]) -> list[list[str]]:
    """The answer of each command: rows, or one word. Raises RuntimeError with Java's trace for the first failure."""
    class_path = (str(fetch_jar(RELEASES[release])), spark_jars())
    classes = compile_java(Path(__file__).parent / "java_releases", class_path)
    with tempfile.TemporaryDirectory(prefix="nightkeep-paimon-release-") as scratch:
        java = [program("java", "openjdk-17-jdk-headless"), "-Xmx700m", "-Duser.timezone=UTC", *SHORT_LIVED]
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.nio", "sun.nio.ch", "java.lang")]
        path = os.pathsep.join((str(classes), *class_path))
        done = subprocess.run(
            [*java, *opened, f"-Djava.io.tmpdir={scratch}", "-cp", path, "Release"],
            input="".join("\t".join(command) + "\n" for command in commands),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    for command, answer in zip(commands, answers, strict=False):
        if answer[0] != "OK":
            raise RuntimeError(f"Paimon {release}, {command[:3]}: {answer[1]}")
    if len(answers) != len(commands):
        raise RuntimeError(f"Paimon {release}: {len(commands)} answers, found {len(answers)}: {done.stderr[-2000:]}")
    return [answer[1:] for answer in answers]


def _options(options: Mapping[str, str]) -> str:
    return ";".join(f"{name}={value}" for name, value in options.items())
