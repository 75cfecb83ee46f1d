"""Sample tables in a bucket of the test server, put there by requests: files laid into its folder have no ETag."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from samples.iceberg_places import CATALOG, NOWHERE, Move, current_metadata
from tests.drivers.azure_server import AzureContainer
from tests.drivers.google_server import GoogleBucket
from tests.drivers.s3_server import ACCESS_KEY, REGION, SECRET_KEY, Bucket
from tests.object_store.in_bucket import InBucket

from nightkeep.model import Operation
from nightkeep.storage import Storage
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.objects.store import ObjectStorage

SAMPLES = Path(__file__).parents[2] / "samples"


def upload(folder: Path, bucket: Bucket | AzureContainer | GoogleBucket, prefix: str) -> str:
    """The files of a folder as objects; returns the prefix's URI."""
    return filled(ObjectStorage(f"{bucket.uri}/{prefix}"), folder)


def upload_to_hdfs(folder: Path, location: str) -> str:
    """The files of a folder below a location of HDFS, which is returned."""
    return filled(HdfsStorage(location), folder)


def in_bucket(kind: str, bucket: Bucket | AzureContainer | GoogleBucket, reports: Path) -> InBucket:
    """A sample of "delta" or "paimon" in a bucket, at a key that has to be escaped in addresses."""
    if kind == "delta":
        location = upload(SAMPLES / "delta" / "shop.db" / "clicks", bucket, "clicks a b")
        return InBucket(location, Operation.OPTIMIZE, "_delta_log", reports)
    location = upload(SAMPLES / "paimon" / "shop.db" / "customers", bucket, "shop%20.db/t")
    return InBucket(location, Operation.UPGRADE, "snapshot", reports)


def filled(storage: Storage, folder: Path) -> str:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda path: storage.put(str(path.relative_to(folder)), path.read_bytes()), files))
    return storage.root


@dataclass
class ToBucket(Move):
    """Metadata for `uri`, whose objects the files of `folder` shall become."""

    uri: str = ""

    def moved(self, uri: str) -> str:
        for scheme in ("file://", "file:"):
            start = f"{scheme}{self.old}/"
            if uri.startswith(start):
                return f"{self.uri}/{uri[len(start) :]}"
        return uri

    def _resized(self, path: Path) -> None:
        self.sizes[f"{self.uri}/{path.relative_to(self.folder)}"] = path.stat().st_size


def place_iceberg(bucket: Bucket, scratch: Path, endpoint: str, *, scheme: str = "s3") -> Path:
    """The Iceberg samples below `lake/` of the bucket; the SQLite file of their catalog, which is local."""
    folder = scratch / "lake"
    shutil.copytree(SAMPLES / "iceberg", folder)
    uri = f"{scheme}://{bucket.name}/lake"
    ToBucket(folder, NOWHERE, folder, uri=uri).run()
    upload(folder, bucket, "lake")
    database = scratch / "catalog.db"
    catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{database}", warehouse=uri, **s3_properties(endpoint))
    try:
        catalog.create_namespace("shop")
        for table in sorted(folder.glob("shop/*")):
            place = current_metadata(table).relative_to(folder)
            catalog.register_table(("shop", table.name), f"{uri}/{place}")
    finally:
        catalog.close()
    return database


def catalog_environment(database: Path) -> dict[str, str]:
    """Where pyiceberg, and Nightkeep with it, finds the catalog."""
    prefix = f"PYICEBERG_CATALOG__{CATALOG.upper()}"
    return {f"{prefix}__TYPE": "sql", f"{prefix}__URI": f"sqlite:///{database}"}


def s3_properties(endpoint: str) -> dict[str, str]:
    """For pyiceberg's own reader of S3."""
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": ACCESS_KEY,
        "s3.secret-access-key": SECRET_KEY,
        "s3.region": REGION,
    }


def delta_rs_storage(endpoint: str) -> dict[str, str]:
    """For delta-rs's own reader of S3."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }
