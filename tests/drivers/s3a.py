"""S3A, Hadoop's file system for S3, as Spark needs it on its class path: 9 MB of jars instead of the SDK's bundle.

The bundle that hadoop-aws names is 600 MB. These are the parts of it that reading takes; Netty and Apache's HTTP client
are among Spark's own jars.
"""

from pathlib import Path

from tests.drivers.toolchain import fetch_jars

HADOOP = "org.apache.hadoop:hadoop-aws:3.4.2"
SDK = "2.29.52"
"""What hadoop-project names."""
_PARTS = (
    "annotations",
    "apache-client",
    "arns",
    "auth",
    "aws-core",
    "aws-query-protocol",
    "aws-xml-protocol",
    "checksums",
    "checksums-spi",
    "crt-core",
    "endpoints-spi",
    "http-auth",
    "http-auth-aws",
    "http-auth-aws-eventstream",
    "http-auth-spi",
    "http-client-spi",
    "identity-spi",
    "json-utils",
    "metrics-spi",
    "netty-nio-client",
    "profiles",
    "protocol-core",
    "regions",
    "retries",
    "retries-spi",
    "s3",
    "s3-transfer-manager",
    "sdk-core",
    "third-party-jackson-core",
    "utils",
)
COORDINATES = (
    HADOOP,
    *(f"software.amazon.awssdk:{part}:{SDK}" for part in _PARTS),
    "software.amazon.eventstream:eventstream:1.0.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)


def s3a_jars() -> tuple[Path, ...]:
    """The jars in the cache, fetched by Maven if they are not there."""
    return fetch_jars(f"s3a-{SDK}", COORDINATES)
