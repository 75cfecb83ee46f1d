"""Iceberg tables from one folder to another. Their metadata names every file by its absolute path, so that each file of
metadata is written anew: table metadata, manifest lists, manifests, position deletes and the footers of Puffin files.

Sizes of the files so written are put right where manifests state them; sums in snapshots' summaries stay as they were.
Manifests in snappy or zstd are not handled.

Run from the repository: python -m samples.iceberg_places samples/iceberg FOLDER
copies the samples to FOLDER with FOLDER/catalog.db, a SQLite catalog named `lake`, for pyiceberg, Spark and Java.
"""

import gzip
import json
import shutil
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

CATALOG = "lake"
NOWHERE = Path("/lake")
"""Where the samples' metadata places them."""

_FILE_PATH, _PUFFIN, _TAIL = 2147483546, b"PFA1", 12


@dataclass
class Move:
    """`folder` holds files whose metadata names `old` and shall name `new`, by URIs with or without an authority."""

    folder: Path
    old: Path
    new: Path
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes of files that changed, by their new URI."""

    def run(self) -> None:
        # Hadoop's checksums are wrong of files written anew, and nobody asks for one that is not there.
        for path in self.folder.rglob(".*.crc"):
            path.unlink()
        # What states a size comes after what has it.
        for pattern, rewrite in (
            ("**/data/**/*.parquet", self._data_file),
            ("**/*.puffin", self._data_file),
            ("**/metadata/*-m[0-9]*.avro", self._manifest),
            ("**/metadata/snap-*.avro", self._manifest_list),
            ("**/metadata/*.metadata.json", self._document),
        ):
            for path in sorted(self.folder.glob(pattern)):
                rewrite(path)

    def moved(self, uri: str) -> str:
        for scheme in ("file://", "file:"):
            start = f"{scheme}{self.old}/"
            if uri.startswith(start):
                return f"{scheme}{self.new}/{uri[len(start) :]}"
        return uri

    def _resized(self, path: Path) -> None:
        inside = path.relative_to(self.folder)
        for scheme in ("file://", "file:"):
            self.sizes[f"{scheme}{self.new}/{inside}"] = path.stat().st_size

    def _data_file(self, path: Path) -> None:
        # Flink's Puffin files are named as data files are.
        changed = self._puffin(path) if path.read_bytes()[:4] == _PUFFIN else self._position_deletes(path)
        if changed:
            self._resized(path)

    def _puffin(self, path: Path) -> bool:
        content = path.read_bytes()
        (length,) = struct.unpack("<i", content[-_TAIL : -_TAIL + 4])
        start = len(content) - _TAIL - length
        footer = json.loads(content[start:-_TAIL])
        rewritten = self._texts(footer)
        payload = json.dumps(rewritten, separators=(",", ":")).encode()
        tail = struct.pack("<i", len(payload)) + content[-_TAIL + 4 :]
        path.write_bytes(content[:start] + payload + tail)
        return True

    def _position_deletes(self, path: Path) -> bool:
        schema = pq.read_schema(path)
        if (
            "file_path" not in schema.names
            or schema.field("file_path").metadata[b"PARQUET:field_id"] != b"%d" % _FILE_PATH
        ):
            return False
        with pq.ParquetFile(path) as file:
            table, properties = file.read(), file.schema_arrow.metadata
        paths = pa.array([self.moved(text) for text in table["file_path"].to_pylist()], pa.string())
        at = schema.get_field_index("file_path")
        table = table.set_column(at, schema.field(at), paths).replace_schema_metadata(properties)
        pq.write_table(table, path, compression="zstd", store_schema=False)
        return True

    def _manifest(self, path: Path) -> None:
        self._avro(path, self._entry)

    def _entry(self, entry: dict[str, Any]) -> None:
        file = entry["data_file"]
        file["file_path"] = self.moved(file["file_path"])
        file["file_size_in_bytes"] = self.sizes.get(file["file_path"], file["file_size_in_bytes"])
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = self.moved(file["referenced_data_file"])
        for bounds in ("lower_bounds", "upper_bounds"):
            for bound in file[bounds] or ():
                if bound["key"] == _FILE_PATH:
                    bound["value"] = self.moved(bound["value"].decode()).encode()

    def _manifest_list(self, path: Path) -> None:
        self._avro(path, self._listed)

    def _listed(self, entry: dict[str, Any]) -> None:
        entry["manifest_path"] = self.moved(entry["manifest_path"])
        entry["manifest_length"] = self.sizes.get(entry["manifest_path"], entry["manifest_length"])

    def _avro(self, path: Path, change: Callable[[dict[str, Any]], None]) -> None:
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            header: dict[str, str] = dict(reader.metadata)
            records: list[Any] = list(reader)
        for record in records:
            change(record)
        schema, codec = json.loads(header.pop("avro.schema")), header.pop("avro.codec")
        # The name of the list's own previous place, in Java's headers.
        header = {key: self.moved(value) for key, value in header.items()}
        with path.open("wb") as file:
            fastavro.writer(file, schema, records, codec=codec, metadata=header)
        self._resized(path)

    def _document(self, path: Path) -> None:
        packed = path.name.endswith(".gz.metadata.json")
        content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        rewritten = json.dumps(self._texts(json.loads(content)), separators=(",", ":")).encode()
        path.write_bytes(gzip.compress(rewritten, mtime=0) if packed else rewritten)

    def _texts(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._texts(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._texts(inner) for inner in value]
        return self.moved(value) if isinstance(value, str) else value


def current_metadata(table: Path) -> Path:
    """The newest metadata file of a table's folder, by the number its name starts with."""
    return max((table / "metadata").glob("*.metadata.json"), key=lambda path: int(path.name.partition("-")[0]))


def place(samples: Path, folder: Path) -> Path:
    """Copies the samples and gives them a catalog there; returns the catalog's file."""
    folder = folder.absolute()
    shutil.copytree(samples, folder, dirs_exist_ok=True)
    Move(folder, NOWHERE, folder).run()
    return register(folder)


def register(folder: Path) -> Path:
    """Makes a catalog of the tables in `folder`, each with its newest metadata; returns the catalog's file."""
    database = folder / "catalog.db"
    catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{database}", warehouse=f"file://{folder}")
    try:
        for namespace in sorted(path for path in folder.iterdir() if path.is_dir()):
            catalog.create_namespace(namespace.name)
            for table in sorted(path for path in namespace.iterdir() if path.is_dir()):
                catalog.register_table((namespace.name, table.name), f"file:{current_metadata(table)}")
    finally:
        catalog.close()
    return database


if __name__ == "__main__":
    print(place(Path(sys.argv[1]), Path(sys.argv[2])))
