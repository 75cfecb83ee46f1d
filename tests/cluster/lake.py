"""One table of each format in the bucket of a cluster: placed, read by other engines, counted, and looked through.

`orders` was written by Paimon Java, `clicks` by delta-spark, and `events` is written by pyiceberg, in a catalog that is
a database of Postgres. Each fault has tables of its own, below a folder of its name.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import string
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.airflow_cluster import Cluster
from tests.drivers.lake_rows import rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.object_store.bucket_tables import SAMPLES, delta_rs_storage, s3_properties, upload

from nightkeep.places import write_file

_HEAD = """\
version: 1
defaults: {{writers: conditional, task_memory: 1GB{more}}}
tables:
"""
_ENTRIES = """\
  - {{name: {name}.orders, table: "paimon:{uri}/{name}/orders"}}
  - {{name: {name}.clicks, table: "delta:{uri}/{name}/clicks"}}
  - {{name: {name}.events, table: "iceberg:lake/{name}.events"}}
"""
KINDS = ("orders", "clicks", "events")
_WHOLE = Scan(options=MERGE_ON_READ)
"""Level 0 as well, which Paimon's batch readers leave out where deletion vectors are on."""
_ICEBERG_APPENDS, _ICEBERG_ROWS = 8, 500
_COMMITS = {
    "orders": re.compile(r"snapshot/snapshot-(\d+)"),
    "clicks": re.compile(r"_delta_log/(\d{20})\.json"),
    "events": re.compile(r"metadata/(\d{5})-[0-9a-f-]{36}\.metadata\.json"),
}
_ROOTS = re.compile(
    r"(snapshot/.*|schema/schema-\d+|_delta_log/(\d{20}\.(json|checkpoint.*)|_last_checkpoint)|"
    r"metadata/\d{5}-[^/]*\.metadata\.json)"
)
"""Files that nothing has to name."""
_VECTORS = re.compile(r'"pathOrInlineDv":"[^"]*([^"]{20})"')
_LETTERS, _CAPITALS = string.ascii_lowercase, string.ascii_uppercase
_Z85 = str.maketrans(
    string.digits + _LETTERS + _CAPITALS + ".-:+=^!/*?&<>()[]{}@%$#",
    string.digits + _CAPITALS + _LETTERS + "!#$%&()*+-;<=>?@^_`{|}~",
)


@dataclass(frozen=True)
class Tables:
    """Tables of one fault, the only ones of the policy since they were placed."""

    cluster: Cluster
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}.{kind}" for kind in KINDS)

    def folder(self, kind: str) -> Path:
        """Where the objects of a table are files."""
        return self.cluster.bucket.folder / self.name / kind

    def files(self, kind: str) -> set[str]:
        """Names of objects; what the store keeps beside them for itself is none."""
        folder = self.folder(kind)
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def commits(self, kind: str) -> int:
        """How many versions the table has in its log."""
        return sum(_COMMITS[kind].fullmatch(file) is not None for file in self.files(kind))

    def all_commits(self) -> dict[str, int]:
        return {kind: self.commits(kind) for kind in KINDS}

    def orphans(self) -> list[str]:
        """Files that no version names, found without Nightkeep: their names are in no file of metadata."""
        return [f"{kind}/{file}" for kind in KINDS for file in sorted(_unnamed(self.folder(kind), self.files(kind)))]


def place_tables(cluster: Cluster, name: str) -> Tables:
    """New tables, and the policy that has them alone."""
    bucket = cluster.bucket
    upload(SAMPLES / "paimon/shop.db/orders", bucket, f"{name}/orders")
    upload(SAMPLES / "delta/shop.db/clicks", bucket, f"{name}/clicks")
    with _catalog(cluster) as catalog:
        catalog.create_namespace_if_not_exists(name)
        table = catalog.create_table(f"{name}.events", _events(0).schema, location=f"{bucket.uri}/{name}/events")
        for start in range(_ICEBERG_APPENDS):
            table.append(_events(start * _ICEBERG_ROWS))
    tables = Tables(cluster, name)
    write_policy([tables])
    return tables


def write_policy(every: Sequence[Tables], more: str = "") -> None:
    """The policy of these tables alone; `more` is added to its defaults."""
    uri = every[0].cluster.bucket.uri
    entries = "".join(_ENTRIES.format(name=tables.name, uri=uri) for tables in every)
    write_file(f"{uri}/policy/tables.yaml", f"{_HEAD.format(more=more)}{entries}")


def age_orphans(tables: Tables, days: int) -> None:
    """As if the files that no version has were written so long ago."""
    then = time.time() - days * 24 * 60 * 60
    for file in tables.orphans():
        os.utime(tables.cluster.bucket.folder / tables.name / file, (then, then))


def _events(start: int) -> pa.Table:
    ids = range(start, start + _ICEBERG_ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"event {n}" for n in ids]})


@contextmanager
def _catalog(cluster: Cluster) -> Iterator[SqlCatalog]:
    place = {"uri": cluster.catalog, "warehouse": cluster.bucket.uri}
    catalog = SqlCatalog("lake", **place, **s3_properties(cluster.store.endpoint))
    try:
        yield catalog
    finally:
        catalog.close()


@dataclass(frozen=True)
class Readers:
    """Other engines: pypaimon, deltalake and pyiceberg."""

    pypaimon: PyPaimon
    lakes: Lakes

    def rows(self, tables: Tables) -> Mapping[str, Any]:
        """The rows of each table, in an order of their own."""
        cluster = tables.cluster
        uri, storage = f"{cluster.bucket.uri}/{tables.name}/clicks", delta_rs_storage(cluster.store.endpoint)
        with _catalog(cluster) as catalog:
            events = rows_of(catalog.load_table(f"{tables.name}.events").scan().to_arrow()).ordered()
        return {
            "orders": sorted(self.pypaimon.read(tables.folder("orders"), _WHOLE).rows),
            "clicks": self.lakes.delta_rs_read(uri, storage=storage),
            "events": events,
        }


def _unnamed(folder: Path, files: set[str]) -> set[str]:
    """Files that no file of metadata names, and those that only such files name."""
    texts = {file: _text(folder / file) for file in files}
    kept: set[str] = set()
    while len(kept) != len(texts):
        kept = set(texts)
        everything = "\n".join(texts.values())
        texts = {file: text for file, text in texts.items() if _ROOTS.fullmatch(file) or _stem(file) in everything}
    return files - kept


def _stem(file: str) -> str:
    """By which metadata names a file. That of Delta's vectors has their id alone."""
    return Path(file).stem.removeprefix("deletion_vector_") if "deletion_vector_" in file else Path(file).name


def _text(path: Path) -> str:
    """A file of metadata as text; nothing of a data file."""
    if path.parent.name not in ("snapshot", "schema", "manifest", "metadata", "_delta_log", "index"):
        return ""
    content = path.read_bytes()
    if content.startswith(b"Obj\x01"):
        return "".join(_blocks(content))
    if content.startswith(b"PAR1"):
        return json.dumps(pq.read_table(BytesIO(content)).to_pylist(), default=str)
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    text = content.decode(errors="replace")
    return "\n".join([text, *(str(_vector(encoded)) for encoded in _VECTORS.findall(text))])


def _vector(encoded: str) -> UUID:
    """The id in the name of a file of deletion vectors, of 20 characters in Z85."""
    return UUID(bytes=base64.b85decode(encoded.translate(_Z85)))


def _blocks(content: bytes) -> Iterator[str]:
    """Blocks of an Avro file, unpacked: names of files are in them as UTF-8. Each ends with the file's marker, and
    begins with two numbers of variable length."""
    header, *blocks, rest = content.split(content[-16:])
    assert rest == b""
    for block in blocks:
        packed = re.sub(rb"\A[\x80-\xff]*[\x00-\x7f][\x80-\xff]*[\x00-\x7f]", b"", block, flags=re.DOTALL)
        if b"zstandard" in header:
            packed = zstandard.ZstdDecompressor().stream_reader(packed).read()
        elif b"deflate" in header:
            packed = zlib.decompress(packed, -zlib.MAX_WBITS)
        yield packed.decode(errors="replace")
