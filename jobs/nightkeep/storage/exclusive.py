"""Whether a store keeps the promise that commits rest on: that a name is created once, whoever else tries."""

from __future__ import annotations

from functools import cache
from uuid import uuid4

from nightkeep.errors import RefusedTable
from nightkeep.storage.objects import ObjectStorage
from nightkeep.storage.verbs import Storage


def require_exclusive_create(storage: Storage) -> None:
    """Create a file that nobody needs twice, once per process and store; what is no object store needs no proof.

    Raises RefusedTable where the second one is created as well: the store ignores conditions of a request, as some that
    call themselves compatible with S3 do, so that two writers could overwrite each other's commits.
    """
    if isinstance(storage, ObjectStorage):
        _prove(storage)


@cache
def _prove(storage: ObjectStorage) -> None:
    folder = f"{storage.bounds[0]}/_nightkeep".lstrip("/")
    name = f"{folder}/probe-{uuid4()}"
    try:
        storage.put_if_absent(name, b"first", temporary=f"{name}.first")
        is_ignored = storage.put_if_absent(name, b"second", temporary=f"{name}.second")
    finally:
        storage.delete(name)
    if is_ignored:
        feature = "its store overwrites where it is told to create (If-None-Match: *)"
        raise RefusedTable(storage.root, feature, "use a store that honours conditional writes")
