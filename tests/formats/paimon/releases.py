"""Tables that releases of Paimon Java wrote, as tests/golden/paimon/make_releases.py made them."""

import tarfile
from pathlib import Path

from tests.formats.paimon.golden import GOLDEN

ARCHIVES = GOLDEN / "releases"
RELEASES = ("0.5", "0.6", "0.7", "0.8.2", "0.9.0", "1.0.1", "1.1.1", "1.2.0", "1.3.1")
KINDS = ("keys", "keys-orc", "keys-avro", "append-parquet", "append-orc", "append-avro", "ordered-parquet")
"""`keys`: of Parquet files, with deletion vectors from 0.8 on."""


def unpacked(release: str, kind: str, folder: Path) -> Path:
    """The table in a folder of its own."""
    with tarfile.open(ARCHIVES / f"{release}.tar.xz") as packed:
        held = {member.name.partition("/")[0] for member in packed}
        name = kind if kind != "keys" else next(each for each in ("vectors-parquet", "keys-parquet") if each in held)
        packed.extractall(folder, [member for member in packed if member.name.startswith(f"{name}/")], filter="data")
    return folder / name
