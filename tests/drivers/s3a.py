"""S3A, Hadoop's file system for S3, as Spark needs it on its class path: 9 MB of jars instead of the SDK's bundle.

The bundle that hadoop-aws names is 600 MB. These are the parts of it that reading takes; Netty and Apache's HTTP client
are among Spark's own jars.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tests.drivers.toolchain import _run, alone, cache_dir, program

HADOOP = "org.apache.hadoop:hadoop-aws:3.4.2"
_SDK = "2.29.52"
"""What hadoop-project names."""
_PARTS = (
    "annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol", "checksums",
    "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws", "http-auth-aws-eventstream",
    "http-auth-spi", "http-client-spi", "identity-spi", "json-utils", "metrics-spi", "netty-nio-client", "profiles",
    "protocol-core", "regions", "retries", "retries-spi", "s3", "s3-transfer-manager", "sdk-core",
    "third-party-jackson-core", "utils",
)  # fmt: skip
COORDINATES = (
    HADOOP,
    *(f"software.amazon.awssdk:{part}:{_SDK}" for part in _PARTS),
    "software.amazon.eventstream:eventstream:1.0.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)
_FETCH_SECONDS = 900


def s3a_jars() -> tuple[Path, ...]:
    """The jars in the cache, fetched by Maven if they are not there."""
    folder = cache_dir() / f"s3a-{_SDK}"
    with alone("s3a"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir()) as scratch:
                _fetch(Path(scratch))
                Path(scratch, "jars").rename(folder)
    found = tuple(sorted(folder.glob("*.jar")))
    assert len(found) == len(COORDINATES), f"{folder}: expected {len(COORDINATES)} jars, found {len(found)}"
    return found


def _fetch(scratch: Path) -> None:
    project = scratch / "pom.xml"
    project.write_text(_project(COORDINATES))
    # Maven's own repository is not safe for two at once.
    with alone("jars"):
        command = [program("mvn", "maven"), "-q", "-B", "-f", str(project), "dependency:copy-dependencies"]
        _run([*command, f"-DoutputDirectory={scratch / 'jars'}"], "Maven could not fetch S3A", _FETCH_SECONDS)


def _project(coordinates: Sequence[str]) -> str:
    """Of these jars alone: what they depend on is among them, or Spark's."""
    everything = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    entries = []
    for each in coordinates:
        group, artifact, version = map(escape, each.split(":"))
        told = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        entries.append(f"<dependency>{told}{everything}</dependency>")
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>nightkeep.tests</groupId><artifactId>s3a</artifactId><version>1</version>"
        f"<dependencies>{''.join(entries)}</dependencies></project>"
    )
