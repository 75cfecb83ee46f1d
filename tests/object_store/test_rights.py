"""The policies of docs/rights, each given to a user of a bucket: what it allows works, what it does not is denied."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from tests.drivers.s3_server import REGION, S3Server, serve_s3
from tests.object_store.bucket_tables import SAMPLES
from tests.object_store.in_bucket import InBucket

import nightkeep
from nightkeep.model import Operation, Outcome

pytestmark = pytest.mark.extended

POLICIES = Path(__file__).parents[2] / "docs/rights"
TABLES = {
    "delta": ("delta/shop.db/clicks", Operation.OPTIMIZE, "_delta_log"),
    "paimon": ("paimon/shop.db/orders", Operation.UPGRADE, "snapshot"),
}
OLD_SECONDS = 10 * 24 * 60 * 60


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serve_s3(users=["somebody"]) as running:
        yield running


@dataclass(frozen=True)
class Lake:
    """Two buckets of one server, and a table in the first; the environment is that of a user with some rights."""

    server: S3Server
    table: InBucket
    patch: pytest.MonkeyPatch

    def client(self) -> Any:
        """Of who may do everything."""
        found = self.server.environment()
        config = Config(s3={"addressing_style": "path"})
        return boto3.client(
            "s3",
            endpoint_url=self.server.endpoint,
            region_name=REGION,
            aws_access_key_id=found["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=found["AWS_SECRET_ACCESS_KEY"],
            config=config,
        )

    def grant(self, name: str) -> None:
        """Give the user what a policy of the docs states, and nothing else."""
        rows = json.loads((POLICIES / f"s3-{name}.json").read_text())["Statement"]
        for bucket in ("lake", "lake-reports"):
            arn = f"arn:aws:s3:::{bucket}"
            kept = [_of_bucket(row, arn) for row in rows if _resources(row, arn)]
            text = json.dumps({"Version": "2012-10-17", "Statement": kept})
            self.client().put_bucket_policy(Bucket=bucket, Policy=text)

    def names(self) -> list[str]:
        return sorted(each["Key"] for each in self.client().list_objects_v2(Bucket="lake")["Contents"])

    def rows(self) -> list[tuple[object, ...]]:
        """All committed rows: of a Paimon table with deletion vectors, its engine shows level 0 once it is upgraded."""
        read = nightkeep.read(f"{self.table.format}:{self.table.location}", view="merge-on-read").read_all()
        return sorted(map(tuple, (row.values() for row in read.to_pylist())), key=repr)


def _resources(row: Mapping[str, Any], arn: str) -> list[str]:
    return [each for each in row["Resource"] if each == arn or each.startswith(f"{arn}/")]


def _of_bucket(row: Mapping[str, Any], arn: str) -> dict[str, Any]:
    """The statement as a policy of the bucket, which names whom it is for."""
    return {**row, "Resource": _resources(row, arn), "Principal": {"AWS": ["somebody"]}}


@pytest.fixture(params=TABLES)
def lake(request: pytest.FixtureRequest, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    sample, operation, commits = TABLES[request.param]
    made = Lake(server, InBucket("s3://lake/t", operation, commits, "s3://lake-reports/r"), monkeypatch)  # type: ignore[arg-type]
    client = made.client()
    for bucket in ("lake", "lake-reports"):
        client.create_bucket(Bucket=bucket)
    for file in sorted((SAMPLES / sample).rglob("*")):
        if file.is_file():
            client.put_object(Bucket="lake", Key=f"t/{file.relative_to(SAMPLES / sample)}", Body=file.read_bytes())
    for name, value in server.environment(user="somebody").items():
        monkeypatch.setenv(name, value)
    yield made
    for bucket in ("lake", "lake-reports"):
        for each in client.list_objects_v2(Bucket=bucket).get("Contents", ()):
            client.delete_object(Bucket=bucket, Key=each["Key"])
        client.delete_bucket(Bucket=bucket)


def test_who_may_read_plans_and_reads_and_changes_nothing(lake: Lake) -> None:
    lake.grant("read-only")
    before = lake.names()
    assert lake.rows()
    address = f"{lake.table.format}:{lake.table.location}"
    assert nightkeep.plan(address, operation=[lake.table.operation.value], reports="s3://lake-reports/r")
    document = lake.table.care()
    assert document.outcome is Outcome.FAILED and "denied" in (document.reason or "").lower(), document.reason
    assert lake.names() == before


def test_who_may_read_audits_what_others_committed(lake: Lake) -> None:
    lake.grant("maintain")
    assert lake.table.care().outcome is Outcome.VERIFIED
    lake.grant("read-only")
    before = lake.names()
    address = f"{lake.table.format}:{lake.table.location}"
    document = nightkeep.audit(address, since="3650d", files=True, reports="s3://lake-reports/r")
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert "proven" in [each["verdict"] for each in document.extra["audit"]["commits"]]  # type: ignore[index]
    assert lake.names() == before


def test_who_may_maintain_publishes_and_deletes_nothing(lake: Lake, server: S3Server, tmp_path: Path) -> None:
    lake.grant("maintain")
    rows, before = lake.rows(), lake.names()
    document = lake.table.care()
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert lake.rows() == rows and set(lake.names()) > set(before)
    orphan = leave(lake, server)
    swept = sweep(lake, tmp_path)
    assert swept.outcome != Outcome.VERIFIED and orphan in lake.names(), swept.reason


def test_who_may_sweep_deletes_orphans_and_nothing_else(lake: Lake, server: S3Server, tmp_path: Path) -> None:
    lake.grant("sweep")
    rows, before = lake.rows(), lake.names()
    orphan = leave(lake, server)
    swept = sweep(lake, tmp_path)
    assert swept.outcome == Outcome.VERIFIED, swept.reason
    assert orphan not in lake.names() and lake.rows() == rows and set(lake.names()) == set(before)


def sweep(lake: Lake, folder: Path) -> Any:
    """Without the check afterwards, which would need Spark."""
    table = f"{{name: t, table: '{lake.table.format}:{lake.table.location}'}}"
    policy = f"version: 1\ndefaults: {{writers: conditional, check: {{enabled: false}}}}\ntables: [{table}]\n"
    (folder / "tables.yaml").write_text(policy)
    return nightkeep.sweep("t", delete=True, policy=folder / "tables.yaml", reports="s3://lake-reports/r")


def leave(lake: Lake, server: S3Server) -> str:
    """An orphan of the table, old enough to go."""
    name = {
        "delta": "t/part-00000-0a1b2c3d-0000-4000-8000-000000000000-c000.snappy.parquet",
        "paimon": "t/manifest/manifest-0a1b2c3d-0000-4000-8000-000000000000-0",
    }[lake.table.format]
    lake.client().put_object(Bucket="lake", Key=name, Body=b"left")
    old = time.time() - OLD_SECONDS
    os.utime(server.folder / "lake" / name, (old, old))
    return name
