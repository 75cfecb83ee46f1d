"""Files as metadata has them -> what a listing of their folders says otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nightkeep.storage import Storage


def listing_faults(storage: Storage, files: Mapping[str, int], *, told_by: str) -> Iterator[str]:
    """Files, by name with their bytes, that their folder does not have in that size. `told_by` says they are there."""
    folders = {name.rpartition("/")[0] for name in files}
    listed = {stored.name: stored.bytes for folder in sorted(folders) for stored in storage.list(folder)}
    for name, size in files.items():
        if listed.get(name) != size:
            found = "no such file" if name not in listed else f"{listed[name]} bytes"
            yield f"{name}: {told_by} says {size} bytes, the folder has {found}"
