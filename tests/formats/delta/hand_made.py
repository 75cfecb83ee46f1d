"""Delta tables written here with pyarrow and json alone: what a foreign writer commits, in milliseconds.

Other tests let delta-spark, delta-rs and DuckDB read such tables, so that this writer is held to what they understand.
"""

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

NOW_MS = 1_795_000_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("note", pa.string())])
"""Data columns; the partition column `day` is a date."""
_TYPES = {"id": "long", "price": "double", "note": "string", "day": "date"}
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


class HandMade:
    """One table, partitioned by day, with deletion vectors; `row_ids` with row tracking and in-commit timestamps."""

    def __init__(self, folder: Path, *, row_ids: bool = False, properties: Mapping[str, str] | None = None) -> None:
        self.folder, self._row_ids = folder, row_ids
        (folder / "_delta_log").mkdir(parents=True)
        writers = ["deletionVectors"]
        configuration = {"delta.enableDeletionVectors": "true", **(properties or {})}
        if row_ids:
            writers += ["rowTracking", "domainMetadata", "inCommitTimestamp"]
            configuration |= {
                "delta.enableRowTracking": "true",
                "delta.enableInCommitTimestamps": "true",
                "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
                "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col",
            }
        fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in _TYPES.items()]
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["day"],
            "configuration": configuration,
            "createdTime": NOW_MS,
        }
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": writers,
        }
        self.commit("CREATE TABLE", {"protocol": protocol}, {"metaData": metadata})

    @classmethod
    def at(cls, folder: Path) -> "HandMade":
        """A table that is there already; whoever wrote it, its log must be whole and its vectors relative."""
        made = cls.__new__(cls)
        made.folder = folder
        made._row_ids = any("rowTracking" in action["protocol"]["writerFeatures"] for action in made.all("protocol"))
        return made

    @property
    def version(self) -> int:
        return max((int(path.stem) for path in (self.folder / "_delta_log").glob("[0-9]*.json")), default=-1)

    def append(self, day: str | None, ids: Iterable[int] | pa.Table) -> None:
        """One file with a row for each id, or with these rows."""
        self.commit("WRITE", *self.written(day, ids))

    def written(self, day: str | None, ids: Iterable[int] | pa.Table) -> list[dict[str, Any]]:
        """The actions that add a new file."""
        folder = f"day={'__HIVE_DEFAULT_PARTITION__' if day is None else day}"
        name = f"{folder}/part-00000-{uuid.uuid4()}.c000.snappy.parquet"
        rows = ids if isinstance(ids, pa.Table) else rows_of(ids)
        path = quote(name, safe="/=")
        (self.folder / folder).mkdir(exist_ok=True)
        pq.write_table(rows, self.folder / name, store_schema=False)
        add = {
            "path": path,
            "partitionValues": {"day": day},
            "size": (self.folder / name).stat().st_size,
            "modificationTime": NOW_MS,
            "dataChange": True,
            "stats": statistics(rows),
        }
        if not self._row_ids:
            return [{"add": add}]
        told = [json.loads(action["domainMetadata"]["configuration"]) for action in self.all("domainMetadata")]
        base = 1 + max((mark["rowIdHighWaterMark"] for mark in told), default=-1)
        add |= {"baseRowId": base, "defaultRowCommitVersion": self.version + 1}
        mark = json.dumps({"rowIdHighWaterMark": base + rows.num_rows - 1})
        domain = {"domain": "delta.rowTracking", "configuration": mark, "removed": False}
        return [{"add": add}, {"domainMetadata": domain}]

    def delete(self, day: str, ids: Iterable[int]) -> None:
        """By vectors in one file; a file of which nothing is left is removed."""
        wanted, actions, vectors = set(ids), list[dict[str, Any]](), dict[str, BitMap64]()
        for add in self.live().values():
            if add["partitionValues"] != {"day": day}:
                continue
            held = (
                pq.read_table(self.folder / unquote(add["path"]), columns=["id"], partitioning=None)
                .column(0)
                .to_pylist()
            )
            gone = BitMap64(position for position, number in enumerate(held) if number in wanted)
            if gone and gone - self.deleted(add):
                vectors[add["path"]] = gone | self.deleted(add)
        described = self.vectors(vectors)
        for path, vector in described.items():
            add = self.live()[path]
            told = json.loads(add["stats"]) | {"tightBounds": False}
            actions.append({"remove": removal(add)})
            if vector["cardinality"] < told["numRecords"]:
                actions.append(
                    {"add": {**add, "deletionVector": vector, "stats": json.dumps(told), "dataChange": True}}
                )
        self.commit("DELETE", *actions)

    def vectors(self, found: Mapping[str, BitMap64]) -> dict[str, dict[str, Any]]:
        """Their descriptors, once they are written into one file (PROTOCOL.md, "Deletion Vectors")."""
        unique, data, described = uuid.uuid4(), bytearray(b"\x01"), {}
        for path, bitmap in found.items():
            payload = struct.pack("<I", 1681511377) + bitmap.serialize()
            described[path] = {
                "storageType": "u",
                "pathOrInlineDv": z85(unique.bytes),
                "offset": len(data),
                "sizeInBytes": len(payload),
                "cardinality": len(bitmap),
            }
            data += struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))
        (self.folder / f"deletion_vector_{unique}.bin").write_bytes(data)
        return described

    def deleted(self, add: Mapping[str, Any]) -> BitMap64:
        vector = add.get("deletionVector")
        if vector is None:
            return BitMap64()
        folder, unique = vector["pathOrInlineDv"][:-20], uuid.UUID(bytes=from_z85(vector["pathOrInlineDv"][-20:]))
        data = (self.folder / folder / f"deletion_vector_{unique}.bin").read_bytes()
        start = vector["offset"] + 8
        return BitMap64.deserialize(data[start : start + vector["sizeInBytes"] - 4])

    def live(self) -> dict[str, dict[str, Any]]:
        """Adds by path; logs of this writer have no checkpoints, and no two vectors of one file."""
        found: dict[str, dict[str, Any]] = {}
        for path in sorted((self.folder / "_delta_log").glob("[0-9]*.json")):
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            for action in actions:
                found.pop(action.get("remove", {}).get("path"), None)
            found |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
        return found

    def rows(self) -> list[tuple[Any, ...]]:
        """(day, id, price, note), sorted."""
        found = []
        for add in self.live().values():
            held = pq.read_table(self.folder / unquote(add["path"]), partitioning=None).select(SCHEMA.names).to_pylist()
            gone = self.deleted(add)
            day = add["partitionValues"].get("day")
            found += [(day, *row.values()) for position, row in enumerate(held) if position not in gone]
        return sorted(found, key=repr)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Actions of every commit, oldest first."""
        paths = sorted((self.folder / "_delta_log").glob("[0-9]*.json"))
        found = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        return [action for action in found if kind in action]

    def contents(self) -> dict[str, bytes]:
        """Every byte below the table's folder."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def checkpoint(self) -> None:
        """A classic one, in one file, of the newest version (PROTOCOL.md, "Checkpoints")."""
        named = [action for kind in ("protocol", "metaData", "domainMetadata") for action in self.all(kind)[-1:]]
        rows = [*named, *({"add": add} for add in self.live().values())]
        table = pa.Table.from_pylist(rows, _CHECKPOINT)
        pq.write_table(table, self.folder / f"_delta_log/{self.version:020d}.checkpoint.parquet")

    def expire(self, version: int) -> None:
        """Forgets an older version, as a clean-up of the log would."""
        assert version < self.version
        self.checkpoint()
        (self.folder / f"_delta_log/{version:020d}.json").unlink()

    def cluster_by(self, *columns: str) -> None:
        """Let the table be one with clustering columns from its first version on, and without partitions, which no such
        table has."""
        domain = {
            "domain": "delta.clustering",
            "configuration": json.dumps({"clusteringColumns": [[name] for name in columns]}),
            "removed": False,
        }
        for path in sorted((self.folder / "_delta_log").glob("[0-9]*.json")):
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            for body in (body for action in actions for body in action.values()):
                if "partitionValues" in body:
                    body["partitionValues"] = {}
                if "partitionColumns" in body:
                    schema = json.loads(body["schemaString"])
                    schema["fields"] = [
                        each for each in schema["fields"] if each["name"] not in body["partitionColumns"]
                    ]
                    body |= {"schemaString": json.dumps(schema), "partitionColumns": []}
                if "writerFeatures" in body:
                    body["writerFeatures"] = sorted({*body["writerFeatures"], "clustering", "domainMetadata"})
                    actions.append({"domainMetadata": domain})
            path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))

    def commit(self, operation: str, *actions: Mapping[str, Any]) -> None:
        number = self.version + 1
        now_ms = max([NOW_MS + number, *(each["commitInfo"]["timestamp"] + 1 for each in self.all("commitInfo"))])
        info: dict[str, Any] = {"inCommitTimestamp": now_ms} if self._row_ids else {}
        info |= {
            "timestamp": now_ms,
            "operation": operation,
            "operationParameters": {},
            "engineInfo": "hand",
            "isBlindAppend": operation == "WRITE",
            "txnId": str(uuid.uuid4()),
            "operationMetrics": _metrics(operation, actions),
            **({"readVersion": number - 1} if number else {}),
        }
        lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
        with (self.folder / f"_delta_log/{number:020d}.json").open("x") as log:
            log.write("\n".join(lines) + "\n")


def _metrics(operation: str, actions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How many files a commit adds, as delta-spark tells it."""
    adds = [action["add"] for action in actions if "add" in action]
    marked = sum(add.get("deletionVector") is not None for add in adds)
    if operation == "WRITE":
        return {"numFiles": str(len(adds))}
    return {"numAddedFiles": str(len(adds) - marked), "numDeletionVectorsAdded": str(marked)}


_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_ADD = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": _TEXTS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "tags": _TEXTS,
        "deletionVector": _VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    }
)
_METADATA = pa.struct(
    {
        "id": pa.string(),
        "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
        "schemaString": pa.string(),
        "partitionColumns": pa.list_(pa.string()),
        "configuration": _TEXTS,
        "createdTime": pa.int64(),
    }
)
_PROTOCOL = pa.struct(
    {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": pa.list_(pa.string()),
        "writerFeatures": pa.list_(pa.string()),
    }
)
_DOMAIN = pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()})
_CHECKPOINT = pa.schema({"protocol": _PROTOCOL, "metaData": _METADATA, "domainMetadata": _DOMAIN, "add": _ADD})


def rows_of(ids: Iterable[int]) -> pa.Table:
    """Rows with nulls and empty texts among them."""
    numbers = list(ids)
    notes = [None if n % 7 == 0 else "" if n % 7 == 1 else f"note {n % 50:03d}" for n in numbers]
    return pa.table({"id": numbers, "price": [n / 4 for n in numbers], "note": notes}, SCHEMA)


def statistics(rows: pa.Table) -> str:
    ends = {name: pc.min_max(rows.column(name)).as_py() for name in rows.column_names}
    sides = {
        side: {name: found[end] for name, found in ends.items() if found[end] is not None}
        for side, end in (("minValues", "min"), ("maxValues", "max"))
    }
    nulls = {name: rows.column(name).null_count for name in rows.column_names}
    return json.dumps({"numRecords": rows.num_rows, **sides, "nullCount": nulls, "tightBounds": True})


def removal(add: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("path", "partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    head = {"deletionTimestamp": NOW_MS, "dataChange": True, "extendedFileMetadata": True}
    return head | {key: add[key] for key in kept if key in add}


def z85(data: bytes) -> str:
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def from_z85(text: str) -> bytes:
    words = [text[at : at + 5] for at in range(0, len(text), 5)]
    return b"".join(struct.pack(">I", sum(_Z85.index(c) * 85 ** (4 - n) for n, c in enumerate(w))) for w in words)


def two_days(folder: Path) -> HandMade:
    """2026-11-01 and 2026-11-02 in three files each, with ids from 0 to 119, and vectors on the first."""
    made = HandMade(folder)
    for day in ("2026-11-01", "2026-11-02"):
        for start in (0, 40, 80):
            made.append(day, range(start, start + 40))
    made.delete("2026-11-01", range(10, 70))
    return made
