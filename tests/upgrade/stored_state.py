"""The stored state of a release <-> an archive that names no machine.

`states/<version>/state.tar.gz` holds what a release left in one folder: a policy, tables, reports and quarantines, with
`expected.json`, what that release showed of them. The archive states that it is in NOWHERE. `unpacked` moves it to
another folder: text by replacement, Iceberg's metadata by `samples.iceberg_places`, and identities of Iceberg's
versions, which are digests of places, by the rule of the release that wrote them.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import socket
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from samples.iceberg_places import Move, register

STATES: Final = Path(__file__).parent / "states"
NOWHERE: Final = Path("/nightkeep-state")
"""Where the state of an archive says it is."""
ICEBERG: Final = "warehouse/iceberg"
EXPECTED: Final = "expected.json"
_TIMES: Final = "times.json"
_ARCHIVE: Final = "state.tar.gz"
_TEXT: Final = (".json", ".jsonl", ".html", ".yaml")


def releases() -> tuple[str, ...]:
    """The releases that have a stored state."""
    return tuple(sorted(path.parent.name for path in STATES.glob(f"*/{_ARCHIVE}")))


def variables(folder: Path) -> dict[str, str]:
    """What commands need of their environment to work on a state in `folder`."""
    return {
        "NIGHTKEEP_POLICY": str(folder / "tables.yaml"),
        "NIGHTKEEP_REPORTS": str(folder / "reports"),
        "NIGHTKEEP_EVIDENCE_SECRET": "of the tests only",
        "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/{ICEBERG}/catalog.db",
    }


def expected(folder: Path) -> Any:
    """What the release that wrote the state showed of it."""
    return json.loads((folder / EXPECTED).read_text(encoding="utf-8"))


def unpacked(release: str, folder: Path) -> Path:
    """The state of a release in `folder`, which must not exist, with the times of its files and a catalog."""
    with tarfile.open(STATES / release / _ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    times: Mapping[str, int] = json.loads((folder / _TIMES).read_text(encoding="utf-8"))
    (folder / _TIMES).unlink()
    moved(folder, NOWHERE, folder)
    _set_times(folder, times)
    register(folder / ICEBERG)
    return folder


def pack(folder: Path, release: str) -> Path:
    """Write the archive of the state in `folder`, which is changed by that: it names no machine any more."""
    times = {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in _files(folder)}
    moved(folder, folder, NOWHERE)
    # As executors and the owners of quarantines name it.
    host = re.compile(rf"(?<!\w){re.escape(socket.gethostname())}(?=:| pid:)")
    for path in _texts(folder):
        text = path.read_text(encoding="utf-8").replace(os.readlink("/proc/self/ns/pid"), "pid:[1]")
        path.write_text(host.sub("writer", text), encoding="utf-8")
    there = {str(path.relative_to(folder)) for path in _files(folder)}
    (folder / _TIMES).write_text(json.dumps({name: ns for name, ns in times.items() if name in there}))
    target = STATES / release / _ARCHIVE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(_tar(folder), 9, mtime=0))
    return target


def moved(folder: Path, old: Path, new: Path) -> None:
    """Change the files in `folder` from a state in `old` to one in `new`."""
    (folder / ICEBERG / "catalog.db").unlink(missing_ok=True)
    before = _identities(folder / ICEBERG)
    Move(folder / ICEBERG, old / ICEBERG, new / ICEBERG).run()
    after = _identities(folder / ICEBERG)
    digests = {before[key]: after[key] for key in before}
    # The digest of a version's files is left out: it is one of places too, and may be absent.
    named = re.compile(rf"({'|'.join(digests)})(:[0-9a-f]*)?")
    for path in _texts(folder):
        # Names in a quarantine of Iceberg are of the whole disk, without the first slash.
        text = path.read_text(encoding="utf-8").replace(str(old)[1:], str(new)[1:])
        text = named.sub(lambda match: digests[match[1]] + (":" if match[2] else ""), text)
        path.write_text(text, encoding="utf-8")


def _identities(folder: Path) -> dict[tuple[str, int], str]:
    """The digest of each Iceberg snapshot, as release 0.1.0 stores it: of table UUID, id and manifest list."""
    found = dict[tuple[str, int], str]()
    for path in sorted(folder.glob("*/*/metadata/*.metadata.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        for snapshot in document.get("snapshots", ()):
            parts = (document["table-uuid"].lower(), str(snapshot["snapshot-id"]), snapshot["manifest-list"])
            digest = blake2b(digest_size=16)
            for part in parts:
                digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
            found[document["table-uuid"], snapshot["snapshot-id"]] = digest.hexdigest()
    return found


def _texts(folder: Path) -> Iterator[Path]:
    """Files of Nightkeep that may name places. Tables of Paimon and Delta name none."""
    for path in _files(folder):
        inside = path.relative_to(folder)
        if path.suffix in _TEXT and (inside.parts[0] != "warehouse" or "_nightkeep" in inside.parts):
            yield path


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _set_times(folder: Path, times: Mapping[str, int]) -> None:
    for name, ns in times.items():
        os.utime(folder / name, ns=(ns, ns))


def _tar(folder: Path) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for path in _files(folder):
            member = tarfile.TarInfo(str(path.relative_to(folder)))
            member.size, member.mode = path.stat().st_size, 0o644
            with path.open("rb") as source:
                archive.addfile(member, source)
    return sink.getvalue()


def copied(folder: Path, target: Path) -> Path:
    """A copy of an unpacked state, as if it had been unpacked there."""
    shutil.copytree(folder, target)
    times = {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in _files(folder)}
    moved(target, folder, target)
    times.pop(f"{ICEBERG}/catalog.db", None)
    _set_times(target, {name: ns for name, ns in times.items() if (target / name).exists()})
    register(target / ICEBERG)
    return target
