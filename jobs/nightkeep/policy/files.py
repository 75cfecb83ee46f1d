"""The place of a policy file, a local path or the address of a file in a store -> its text, and the files beside it."""

from __future__ import annotations

import fnmatch
import glob
import os
from pathlib import Path

from nightkeep.places import is_address, located, report_store


def read_policy(file: str) -> str:
    """The text of a file. Raises OSError, or UnicodeDecodeError for one that is not UTF-8."""
    if not is_address(file):
        return Path(file).read_text(encoding="utf-8")
    store, name = located(file)
    return store.read(name).data.decode("utf-8")


def folder_of(file: str) -> str:
    """The folder of a file, as the file is spelled: empty for a local file of the working folder."""
    return file.rpartition("/")[0] if is_address(file) else os.path.dirname(file)


def absolute_folder(file: str) -> str:
    """The folder of a file for other folders to work in. Relative places of tables start there."""
    return folder_of(file) if is_address(file) else os.path.dirname(os.path.abspath(file))


def same_file(file: str) -> str:
    """A key that is equal for all spellings of one local path."""
    return file if is_address(file) else os.path.abspath(file)


def beside(file: str, name: str) -> str:
    """The file that `name` means in the folder of `file`; an absolute name means itself."""
    if is_address(name) or not is_address(file):
        return name if is_address(name) else os.path.join(os.path.dirname(file), name)
    return f"{folder_of(file)}/{name}"


def matching(file: str, text: str) -> list[str]:
    """The files beside `file` that `text` names, sorted; a text without a glob is one file, there or not.

    Raises OSError where a store does not answer, and ValueError(expected) for a glob that a store cannot list.
    """
    if not glob.has_magic(text):
        return [beside(file, text)]
    if not is_address(file):
        return sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(file)), text)))
    folder, _, pattern = text.rpartition("/")
    if glob.has_magic(folder):
        raise ValueError("a glob in the last part of the name only, where the policy is in a store")
    place = "/".join(filter(None, [folder_of(file), folder]))
    names = [each.name for each in report_store(place).list("")]
    return [f"{place}/{name}" for name in sorted(names) if fnmatch.fnmatchcase(name, pattern)]
