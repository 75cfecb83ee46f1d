"""Rows -> a table in memory, written as an engine of its own would: by other code, with its rows known as a dict."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.formats.memory.metadata.snapshot import STORES, Store
from nightkeep.model import Address

Row = tuple[int, str | None]


class MemoryEngine:
    """Writes one table, partitioned by `day`; `rows` is what every reader must find in its latest version."""

    def __init__(self, name: str, *, features: Iterable[str] = ()) -> None:
        self.store, self.rows, self._files = Store(), dict[str, Counter[Row]](), 0
        STORES[name] = self.store
        self.address = Address("memory", name, name)
        self._put({"partition_columns": ["day"], "features": list(features), "rows": 0, "units": []}, 1)

    def append(self, day: str, ids: Iterable[int]) -> None:
        """One new version with one new file."""
        rows: list[Row] = [(number, None if number % 7 == 0 else f"note {number}") for number in ids]
        fields: list[pa.Field[Any]] = [
            pa.field("day", pa.string()),
            pa.field("id", pa.int64()),
            pa.field("note", pa.string()),
        ]
        schema = pa.schema(fields)
        table = pa.table([[day] * len(rows), [number for number, _ in rows], [note for _, note in rows]], schema=schema)
        file: dict[str, Any] = {
            "name": self._name("data", "arrow"),
            "rows": len(rows),
            "deleted": None,
            "deleted_rows": 0,
        }
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(table)
        self.store.files[file["name"]] = data = sink.getvalue().to_pybytes()
        latest = self._latest()
        self._unit(latest, day)["files"].append(file | {"bytes": len(data)})
        self.rows.setdefault(day, Counter()).update(rows)
        self._put(latest | {"rows": latest["rows"] + len(rows)})

    def delete(self, day: str, ids: Iterable[int]) -> None:
        """One new version: rows with these ids are marked in every file of the day."""
        latest, gone = self._latest(), set(ids)
        for file in self._unit(latest, day)["files"]:
            held = pa.ipc.open_stream(self.store.files[file["name"]]).read_all().column("id").to_pylist()
            before = BitMap64.deserialize(self.store.files[file["deleted"]]) if file["deleted"] else BitMap64()
            marked = before | BitMap64([at for at, number in enumerate(held) if number in gone])
            if marked != before:
                file["deleted"], file["deleted_rows"] = self._name("deleted", "bitmap"), len(marked)
                self.store.files[file["deleted"]] = marked.serialize()
                latest["rows"] -= len(marked) - len(before)
        self.rows[day] = Counter({row: n for row, n in self.rows[day].items() if row[0] not in gone})
        self._put(latest)

    def _latest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.store.files[f"version-{self._version()}.json"])
        return found

    def _version(self) -> int:
        return max(int(name[8:-5]) for name in self.store.files if name.startswith("version-"))

    def _put(self, content: dict[str, Any], version: int | None = None) -> None:
        version = version or self._version() + 1
        raw = content | {"version": version, "by": "writer", "staged_as": f"writer-{version}"}
        self.store.files[f"version-{version}.json"] = json.dumps(raw).encode()

    def _unit(self, content: dict[str, Any], day: str) -> dict[str, Any]:
        key = {"partition": f"day={day}", "bucket": None}
        found = next((unit for unit in content["units"] if unit["key"] == key), None)
        if found is None:
            found = {"key": key, "partition": {"day": day}, "files": []}
            content["units"].append(found)
        return found

    def _name(self, kind: str, extension: str) -> str:
        self._files += 1
        return f"{kind}-writer-{self._files}.{extension}"
