"""A folder of a store that is not there -> the one beside it that may be meant, as the end of a message."""

from __future__ import annotations

from contextlib import suppress

from nightkeep.errors import NightkeepError, did_you_mean
from nightkeep.storage.verbs import Storage


def near_folder(parent: Storage, name: str) -> str:
    """The folder in `parent` whose name is near. Empty where none is, and where the store does not list them: the
    message is about the one that was asked for."""
    with suppress(OSError, NightkeepError):
        return did_you_mean(name, (folder.rpartition("/")[2] for folder in parent.folders("")))
    return ""
