"""Paimon Java, release by release -> releases/<release>.tar.xz: small tables of the kinds that it could write.

Run as `python -m tests.golden.paimon.make_releases [release ...]`. Tests unpack them: tests/formats/paimon/releases.py.
"""

import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.drivers.paimon_releases import RELEASES, Command, compact, create, run, write

ARCHIVES = Path(__file__).parent / "releases"
COLUMNS: Mapping[str, str] = {
    "id": "INT",
    "day": "STRING",
    "name": "STRING",
    "amount": "DECIMAL(12,2)",
    "large": "DECIMAL(30,4)",
    "at": "TIMESTAMP(3)",
    "ratio": "DOUBLE",
    "flag": "BOOLEAN",
    "born": "DATE",
    "raw": "BYTES",
}
FINE = {**COLUMNS, "tags": "ARRAY<INT>", "micros": "TIMESTAMP(6)"}
"""Of Parquet and ORC: older releases write no microseconds in Avro, and Nightkeep reads no arrays of it."""
FORMATS = ("parquet", "orc", "avro")
WITHOUT_VECTORS = ("0.5", "0.6", "0.7")


def kinds(release: str) -> tuple[str, ...]:
    """`vectors`: with keys and deletion vectors in two buckets. `keys`: merged by readers. `append`, `ordered`: without
    keys, without and with fixed buckets."""
    first = "keys-parquet" if release in WITHOUT_VECTORS else "vectors-parquet"
    return (first, "keys-orc", "keys-avro", *(f"append-{each}" for each in FORMATS), "ordered-parquet")


def commands(table: Path, kind: str) -> Iterator[Command]:
    name, _, file_format = kind.partition("-")
    columns = COLUMNS if file_format == "avro" else FINE
    # The next commit after these merges their manifests.
    options = {"file.format": file_format, "snapshot.num-retained.min": "50", "manifest.merge-min-count": "6"}
    if name in ("append", "ordered"):
        buckets = {"bucket": "-1"} if name == "append" else {"bucket": "2", "bucket-key": "id"}
        yield create(table, columns, partition=["day"] if name == "append" else [], options={**options, **buckets})
        for step in range(6):
            yield write(table, "+I", range(7 * step, 7 * step + 7), f"step {step}")
        return
    vectors = {"bucket": "1", "deletion-vectors.enabled": "true"} if name == "vectors" else {"bucket": "2"}
    yield create(table, columns, keys=["day", "id"], partition=["day"], options={**options, **vectors})
    yield write(table, "+I", range(30), "first")
    yield compact(table, full=True)
    yield write(table, "+U", range(4, 12), "second")
    yield compact(table)
    # Of one day: the vectors of the other stay as they are.
    yield write(table, "-D", range(8, 9), "gone")
    yield write(table, "+U", range(14, 15), "third")


def make(release: str) -> Path:
    archive = ARCHIVES / f"{release}.tar.xz"
    archive.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tables = {kind: Path(folder, kind) for kind in kinds(release)}
        run(release, [command for kind, table in tables.items() for command in commands(table, kind)])
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for kind, table in tables.items():
                for path in sorted(table.rglob("*")):
                    # Checksums of Hadoop's, and empty folders, are of no table.
                    if path.is_file() and not path.name.endswith(".crc"):
                        packed.add(path, arcname=f"{kind}/{path.relative_to(table)}", filter=_plain)
    return archive


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    for each in sys.argv[1:] or RELEASES:
        print(make(each))
