"""The environment of a driver -> what it lacks to start Spark: packages, Java, spark-submit, connectors of buckets.

Spark's release is in the names of its jars, so no JVM but the one of `java -version` starts, and pyspark is not
imported. Deployments run this module in the interpreter of their driver, as a process.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from nightkeep.readiness.finding import Concern, Finding, Readiness
from nightkeep.readiness.packages import find_packages, installed_version, stated_version
from nightkeep.spark.java_found import ADVICE, LEAST, find_java
from nightkeep.spark.settings import given_by_deployment

_JARS: Final[Mapping[str, tuple[str, ...]]] = {
    "s3": ("hadoop-aws",),
    "s3a": ("hadoop-aws",),
    "gs": ("gcs-connector",),
    "abfss": ("hadoop-azure",),
    "abfs": ("hadoop-azure",),
}
"""Connectors by which Spark reads a bucket, by the scheme of an address: what the names of their jars begin with."""
_GROUPS: Final[Mapping[str, str]] = {
    "hadoop-aws": "org.apache.hadoop",
    "hadoop-azure": "org.apache.hadoop",
    "gcs-connector": "com.google.cloud.bigdataoss",
}
"""Maven's groups of the connectors."""
_GIVEN: Final = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"


def find_spark(
    environ: Mapping[str, str], schemes: Iterable[str] = (), *, submitted: bool = False
) -> tuple[Finding, ...]:
    """One row or more for each thing that a driver with this environment needs for tables at addresses of `schemes`.

    `submitted`: the driver is started by spark-submit, which puts the pyspark of its Spark before any installed one.
    """
    submit = _spark_submit(environ)
    own = submit.pyspark if submitted else None
    connectors = dict.fromkeys(name for scheme in schemes for name in _JARS.get(scheme, ()))
    return (
        *find_packages("spark", {} if own is None else {"pyspark": own}),
        _java(environ),
        _submit_row(submit, own or installed_version("pyspark")),
        *(_connector(name, submit, environ) for name in connectors),
    )


@dataclass(frozen=True, slots=True)
class _Submit:
    """A spark-submit, its folder of jars, and the releases of Spark and Hadoop in their names."""

    path: str | None
    jars: Path | None = None

    @property
    def pyspark(self) -> str | None:
        """The version of the pyspark that a distribution of Spark has beside its jars; that of a wheel has none."""
        return None if self.jars is None else stated_version(self.jars.parent / "python" / "pyspark" / "version.py")

    def release_of(self, jar: str) -> str | None:
        """The release of the first jar with this name."""
        names = sorted(each.name for each in self.jars.glob(f"{jar}-*.jar")) if self.jars is not None else []
        match = next((match for name in names if (match := _RELEASE.search(name))), None)
        return match[1] if match else None


_RELEASE: Final = re.compile(r"-(\d+\.\d+\.\d+[\w.-]*)\.jar$")


def _spark_submit(environ: Mapping[str, str]) -> _Submit:
    """The first spark-submit on the path, else the one of SPARK_HOME or of pyspark."""
    home = environ.get("SPARK_HOME")
    places = [Path(home)] if home else [*_pyspark()]
    on_path = shutil.which("spark-submit", path=environ.get("PATH"))
    if on_path is not None and not home and (beside := Path(on_path).resolve().parents[1] / "jars").is_dir():
        return _Submit(on_path, beside)
    path = on_path or next((str(own) for each in places if (own := each / "bin/spark-submit").is_file()), None)
    return _Submit(path, next((jars for each in places if (jars := each / "jars").is_dir()), None))


def _pyspark() -> Iterable[Path]:
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent


def _java(environ: Mapping[str, str]) -> Finding:
    java = find_java(environ)
    status = Readiness.PASSED if java.is_fit else Readiness.MISSING if java.path is None else Readiness.FAILED
    remedy = None if java.is_fit else ADVICE
    expected = f"Java {LEAST} or later"
    return Finding(check="java", status=status, subject="Spark", expected=expected, found=str(java), remedy=remedy)


def _submit_row(submit: _Submit, ours: str | None) -> Finding:
    """spark-submit starts the JVM of every session, also where a command starts it. Its Spark has pyspark's release."""
    release = submit.release_of("spark-core_2.1[0-9]")
    expected = "spark-submit" if ours is None else f"spark-submit of Spark {_series(ours)}, as pyspark is"
    status, remedy = Readiness.PASSED, None
    if submit.path is None or release is None:
        status = Readiness.MISSING if submit.path is None else Readiness.FAILED
        remedy = 'pip install "nightkeep[spark]" installs one, or name that of a cluster in SPARK_HOME'
    elif ours is not None and _series(ours) != _series(release):
        status, remedy = Readiness.FAILED, "install pyspark of the release of SPARK_HOME"
    place = "" if submit.path is None else f" at {submit.path}"
    found = "none" if submit.path is None else f"Spark {release or 'of an unknown release'}{place}"
    subject = os.path.basename(submit.path) if submit.path else "spark-submit"
    return Finding(check="spark-submit", status=status, subject=subject, expected=expected, found=found, remedy=remedy)


def _series(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _connector(name: str, submit: _Submit, environ: Mapping[str, str]) -> Finding:
    """Whether the check can read a bucket. A cluster's own class path is not seen from here."""
    given = {**given_by_deployment(environ), _ARGUMENTS: environ.get(_ARGUMENTS, "")}
    settings = [setting for setting in (*_GIVEN, _ARGUMENTS) if name in given.get(setting, "")]
    jar, group = submit.release_of(name), _GROUPS[name]
    hadoop = submit.release_of("hadoop-client-api") if group == "org.apache.hadoop" else None
    fits = hadoop is None or jar is None or jar == hadoop
    version = "" if hadoop is None else f" {hadoop}"
    found = f"{name} {jar} among Spark's jars" if jar else f"{name} in {settings[0]}" if settings else "none"
    status = Readiness.MISSING if not (jar or settings) else Readiness.PASSED if fits else Readiness.FAILED
    remedy = f"set spark.jars.packages to {group}:{name}:{hadoop or 'VERSION'}, or put its jars among Spark's jars"
    return Finding(
        check="connector",
        status=status,
        subject=name,
        expected=f"{name}{version} for tables in buckets",
        found=found,
        remedy=None if status is Readiness.PASSED else remedy,
        concerns=Concern.TABLES,
    )
