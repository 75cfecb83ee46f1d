"""Files and sizes in metadata -> faults where a listing of their folders differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nightkeep.storage import Storage


def listing_faults(storage: Storage, files: Mapping[str, int], *, source: str) -> Iterator[str]:
    """Faults for files that their folder lacks or has in another size.

    `files` has the bytes by name. `source` names the source of `files` in messages.
    """
    folders = {name.rpartition("/")[0] for name in files}
    listed = {stored.name: stored.bytes for folder in sorted(folders) for stored in storage.list(folder)}
    for name, size in files.items():
        if listed.get(name) != size:
            found = "no such file" if name not in listed else f"{listed[name]} bytes"
            yield f"{name}: {source} states {size} bytes, the folder has {found}"
