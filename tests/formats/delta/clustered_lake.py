"""A Delta table with clustering columns, in Parquet and JSON of ours; other clustering providers write into it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.formats.delta.lake import Lake
from tests.formats.delta.log_edits import rewrite_log

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("text", pa.string()),
        ("deep", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
    ]
)


def clustered(folder: Path, columns: Iterable[Any] = (["id"],), schema: pa.Schema = SCHEMA, **properties: str) -> Lake:
    """An empty table; `columns` are as in its domain."""
    lake = Lake(folder, schema, properties={f"delta.{name}": value for name, value in properties.items()})

    def listed(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"]["writerFeatures"] += ["clustering", "domainMetadata"]

    rewrite_log(folder, listed)
    cluster_by(lake, columns)
    return lake


def cluster_by(lake: Lake, columns: Iterable[Any]) -> None:
    """ALTER TABLE ... CLUSTER BY."""
    configuration = json.dumps({"clusteringColumns": list(columns), "domainName": "delta.clustering"})
    domain = {"domain": "delta.clustering", "configuration": configuration, "removed": False}
    lake._commit([{"domainMetadata": domain}])


def provided(lake: Lake, rows: pa.Table, provider: str, *, files: int = 1) -> list[str]:
    """Append files that another provider clustered; their paths."""
    before = {file.path for file in lake.files}
    lake.append(rows, files=files)
    paths = [file.path for file in lake.files if file.path not in before]

    def named(action: dict[str, Any]) -> None:
        if action.get("add", {}).get("path") in paths:
            action["add"]["clusteringProvider"] = provider

    rewrite_log(lake.folder, named)
    return paths


def rows_of(ids: Iterable[int], seed: int = 0) -> pa.Table:
    numbers = np.random.default_rng(seed).permutation(np.asarray(list(ids), np.int64))
    deep = pa.StructArray.from_arrays(
        [pa.array(numbers % 1000, pa.int32()), pa.array(numbers * 7919 % 1000, pa.int32())], ["x", "y"]
    )
    texts = [f"text {n % 97} {'x' * int(n % 13)}" for n in numbers]
    return pa.table({"id": numbers, "price": numbers * 7919 % 10007 / 4, "text": texts, "deep": deep}, SCHEMA)


def adds(lake: Lake) -> Mapping[str, Mapping[str, Any]]:
    """The live files' actions, by path."""
    return {file.path: file.raw for file in lake.files}
