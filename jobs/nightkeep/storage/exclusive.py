"""A store -> a refusal unless it creates a name only once, whoever else tries. Commits depend on that."""

from __future__ import annotations

from functools import cache
from uuid import uuid4

from nightkeep.errors import RefusedTable
from nightkeep.storage.moved_folders import whole_store
from nightkeep.storage.objects.store import ObjectStorage
from nightkeep.storage.verbs import Storage


def require_exclusive_create(storage: Storage) -> None:
    """Try to create the same unneeded file twice, once per process and store. Only object stores are tested.

    Raises RefusedTable if the second creation succeeds too: the store then ignores conditional requests, as some stores
    do that claim to be compatible with S3, and two writers could overwrite each other's commits.
    """
    store = whole_store(storage)
    if isinstance(store, ObjectStorage):
        _prove(store)


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
        feature = "its store overwrites where a create is asked for (If-None-Match: *)"
        raise RefusedTable(storage.root, feature, "use a store that honours conditional writes")
