"""No message quotes a file that is none of a table's: what its metadata links to may be anybody's."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.mutations.tables import NAMES, copied, metadata_files, read
from tests.support.commands import said
from tests.support.extended import some_extended

from nightkeep.errors import kind_of, reason_of

pytestmark = pytest.mark.slow

SECRET = "xK7vQ2mZ9pL4wR8tB3nY6cF1"
"""No message has eight characters of it in a row by chance."""

_NAMES = (
    "version",
    "id",
    "type",
    "schema",
    "schemas",
    "fields",
    "properties",
    "summary",
    "snapshots",
    "refs",
    "location",
    "path",
    "name",
    "options",
    "metadata",
    "protocol",
    "add",
    "txn",
    "commitInfo",
    "blobs",
    "format-version",
    "size",
    "partitionKeys",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-specs",
    "table-uuid",
    "baseManifestList",
)
"""What other programs' documents have, too."""


def _avro(names: str, *, codec: str = "null", kind: object = "string") -> bytes:
    """A container whose header is whole."""
    schema = {"type": "record", "name": names, "fields": [{"name": names, "type": kind}]}
    header = {
        "magic": b"Obj\x01",
        "meta": {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()},
        "sync": SECRET[:16].encode(),
    }
    out = io.BytesIO()
    fields = [
        {"name": "magic", "type": {"type": "fixed", "name": "M", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "S", "size": 16}},
    ]
    fastavro.schemaless_writer(out, {"type": "record", "name": "H", "fields": fields}, header)
    return out.getvalue() + b"\x02" + b"\x32" + b"\x30" + SECRET.encode() + b"\0" * 16


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"note": [SECRET]}), sink)
    return sink.getvalue()


FOREIGN: Mapping[str, bytes] = {
    "text": f"{SECRET}\nand 'more' of {SECRET}\n".encode(),
    "a quote": f"'{SECRET}\" it's [{SECRET}".encode(),
    "JSON": json.dumps({"note": SECRET, SECRET: [SECRET, {SECRET: 1}]}, indent=1).encode(),
    "a JSON text": json.dumps(SECRET).encode(),
    "a JSON list": json.dumps([SECRET, {SECRET: SECRET}]).encode(),
    "JSON of the same names": json.dumps(dict.fromkeys(_NAMES, SECRET)).encode(),
    "JSON of the same names, lists": json.dumps({name: [SECRET] for name in _NAMES}).encode(),
    "JSON of the same names, objects": json.dumps({name: {SECRET: SECRET} for name in _NAMES}).encode(),
    "JSON, cut": json.dumps({"note": SECRET})[:-4].encode(),
    "JSON of another constant": f'{{"note": NaN, "{SECRET}": {SECRET}}}'.encode(),
    "JSON, packed": gzip.compress(json.dumps({"type": SECRET}).encode()),
    "YAML": f"version: {SECRET}\nusers:\n  - {SECRET}\n".encode(),
    "key=value": f"NOTE={SECRET}\nOTHER={SECRET}\n".encode(),
    "Avro's first bytes": b"Obj\x01" + SECRET.encode() * 4,
    "Avro": _avro(SECRET),
    "Avro of another codec": _avro("r", codec=SECRET),
    "Avro of another type": _avro("r", kind=SECRET),
    "Avro of types within": _avro("r", kind={"type": "array", "items": {"type": SECRET, "name": SECRET}}),
    "Parquet": _parquet(),
    "Parquet's first bytes": b"PAR1" + SECRET.encode() * 4 + b"PAR1",
    "Puffin's ends": b"PFA1PFA1" + SECRET.encode() * 2 + b"\x30\0\0\0\0\0\0\0PFA1",
    "Puffin": b"PFA1PFA1"
    + (foot := json.dumps({"blobs": [{"type": {SECRET: SECRET}}]}).encode())
    + len(foot).to_bytes(4, "little")
    + b"\0\0\0\0PFA1",
}


def told_of(text: str) -> set[str]:
    """What of the secret, or of its bytes in hexadecimal, a text has."""
    parts = {SECRET[at : at + 8] for at in range(len(SECRET) - 7)}
    return {part for part in parts if part in text or part.upper() in text or part.encode().hex() in text}


def test_what_is_looked_for_is_found() -> None:
    assert told_of(f"found {SECRET[3:11]}") and told_of(SECRET.encode().hex()) and not told_of(SECRET[:7])


_ROLES = {
    "paimon": ("positions",),
    "delta": ("checkpoint_v1_struct", "checkpoint_v2_json", "vectors"),
    "iceberg": ("vectors", "positions", "statistics_v3"),
}


@pytest.mark.parametrize("format", some_extended(NAMES, keep=1))
def test_no_error_quotes_a_file_in_a_place_of_metadata(format: str, tmp_path: Path) -> None:
    """Files of each kind that metadata has, one after the other, replaced by each of those."""
    told = 0
    for name in _ROLES[format]:
        (tmp_path / name).mkdir()
        table = copied(format, name, tmp_path / name)
        for path in _one_of_each(metadata_files(format, table)):
            before = path.read_bytes()
            for kind, content in FOREIGN.items():
                path.write_bytes(content)
                errors = read(format, table)
                told += bool(errors)
                assert not told_of("\n".join(errors)), (name, path, kind, errors)
            path.write_bytes(before)
    assert told > len(FOREIGN)


def _one_of_each(files: list[Path]) -> Iterator[Path]:
    """The last file of each kind, by how names begin and end."""
    kinds = {}
    for path in files:
        begin = path.name.partition("-")[0]
        kinds[path.parent.name, "" if begin[:1].isdigit() or len(begin) > 12 else begin, path.suffix] = path
    yield from kinds.values()


def _lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    settings = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = SqlCatalog("foreign", **settings)
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    table.append(rows)
    catalog.close()
    for key, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__FOREIGN__{key.upper()}", value)
    return "iceberg:foreign/db.t", folder / "db/t"


def _opened(format: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    if format == "iceberg":
        return _lake(folder, monkeypatch)
    table = copied(format, {"paimon": "positions", "delta": "vectors"}[format], folder)
    return f"{format}:{table}", table


COMMANDS = (("plan",), ("sweep",), ("expire", "--dry-run"))


@pytest.mark.parametrize("format", some_extended(NAMES, keep=1))
def test_no_command_quotes_it_in_what_it_prints_or_stores(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address, folder = _opened(format, tmp_path, monkeypatch)
    statuses = set()
    for path in _one_of_each(metadata_files(format, folder)):
        before = path.read_bytes()
        for kind in ("text", "JSON of the same names", "Avro of another codec"):
            path.write_bytes(FOREIGN[kind])
            for verb, *options in COMMANDS:
                told = said(capsys, "--debug", verb, address, *options, "--reports", str(tmp_path / "reports"))
                statuses.add(told.status)
                assert not told_of(told.out + told.err), (path, kind, verb, told)
        path.write_bytes(before)
    written = [path for path in (tmp_path / "reports").rglob("*") if path.is_file()]
    assert 1 in statuses and written
    assert not told_of("\n".join(path.read_text(errors="replace") for path in written))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "nothing"),
        (True, "a boolean"),
        (7, "a whole number of 3 bits"),
        (0.5, "a value of type float"),
        ("abc", "a text of 3 characters"),
        (b"ab", "2 bytes"),
        ({"a": 1}, "an object of 1 entries"),
        ([1, 2], "a list of 2 entries"),
    ],
)
def test_what_is_found_is_recognised_by_its_kind_and_size(value: object, told: str) -> None:
    assert kind_of(value) == told


def _failure(work: Callable[[], object]) -> BaseException:
    try:
        work()
    except Exception as failure:  # noqa: BLE001 -- whatever the parser raises
        return failure
    raise AssertionError("expected an error")


@pytest.mark.parametrize(
    "text", [SECRET, f"it's {SECRET}", f"'{SECRET}'", f"\"{SECRET}' ]", f"{SECRET}\n'{SECRET}", f"]{SECRET}'[{SECRET}"]
)
def test_the_reason_of_a_parser_is_reported_without_what_it_quotes(text: str) -> None:
    parsers: tuple[Callable[[], object], ...] = (
        lambda: int(text),
        lambda: float(text),
        lambda: {}[text],
        lambda: json.loads(text),
        lambda: pa.array([text]).cast(pa.int64()),
        lambda: pa.table({"a": [1]}).select([text]),
        lambda: (text.encode() + b"\xff").decode(),
        lambda: os.stat(text),
        lambda: getattr(object(), text),
    )
    for parser in parsers:
        failure = _failure(parser)
        told = reason_of(failure)
        assert not told_of(told) and told.startswith(type(failure).__name__), told
